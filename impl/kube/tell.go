package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"time"
)

// eventNamespace is where Events about nodes are, which are in no namespace themselves, and mostMessage is how many
// bytes the API takes of an Event's text.
const (
	eventNamespace = "default"
	mostMessage    = 1024
)

// Tell makes an Event of type Warning about this node, as kubectl describe node shows it for an hour. The same words
// are one Event, also after a restart: that it is there already is no error.
func (r *Reader) Tell(ctx context.Context, reason, message string) error {
	message = strings.ToValidUTF8(message[:min(len(message), mostMessage)], "")
	sum := fnv.New64a()
	fmt.Fprint(sum, reason, "\n", message)
	now := time.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(map[string]any{
		"kind": "Event", "apiVersion": "v1",
		"metadata": map[string]string{"namespace": eventNamespace,
			"name": fmt.Sprintf("%s.%016x", r.cfg.Node, sum.Sum64())},
		// As kubelet's: what describes a node looks for its name in place of its UID.
		"involvedObject": map[string]string{"kind": "Node", "apiVersion": "v1", "name": r.cfg.Node, "uid": r.cfg.Node},
		"reason":         reason, "message": message, "type": "Warning", "count": 1,
		"firstTimestamp": now, "lastTimestamp": now, "source": map[string]string{"component": "ipamd", "host": r.cfg.Node},
		"reportingComponent": "ipamd", "reportingInstance": r.cfg.Node,
	})
	if err != nil {
		return err
	}
	const path = "/api/v1/namespaces/" + eventNamespace + "/events"
	nothing := func(io.Reader) error { return nil }
	err = r.do(ctx, http.MethodPost, path, nil, bytes.NewReader(body), http.StatusCreated, nothing)
	if e, ok := errors.AsType[*Refused](err); ok && e.Status == http.StatusConflict {
		return nil
	}
	return err
}
