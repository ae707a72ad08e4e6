package ipc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/enilab/enilab/impl/ipam"
)

// IntentDir is the folder in production: a folder of the daemon's own in amazon-vpc-cni-k8s's state folder.
const IntentDir = "/var/run/aws-node/del"

// Intent is a DEL that is still to be done.
type Intent struct {
	Attachment ipam.Attachment
	Pod        ipam.Pod // names for people
	Version    int      // of the local protocol that the plugin spoke
}

// file is an intent as JSON. Members are added and never change their meaning; a reader ignores what it does not know (rule C).
type file struct {
	Version      int    `json:"version"`
	Network      string `json:"network"`
	ContainerID  string `json:"containerID"`
	IfName       string `json:"ifName"`
	PodNamespace string `json:"podNamespace,omitempty"`
	PodName      string `json:"podName,omitempty"`
	PodUID       string `json:"podUID,omitempty"`
}

// maxFile bounds a file, in bytes.
const maxFile = 16 << 10

// name is the file's: a function of the exact attachment, so that a repeated DEL is one file.
func name(a ipam.Attachment) string {
	h := sha256.Sum256([]byte(a.Network + "\x00" + a.ContainerID + "\x00" + a.IfName))
	return hex.EncodeToString(h[:16]) + suffix
}

func encode(in Intent) ([]byte, error) {
	if err := in.plain(); err != nil {
		return nil, err
	}
	raw, _ := json.Marshal(&file{ // texts and numbers can always be encoded
		in.Version, in.Attachment.Network, in.Attachment.ContainerID, in.Attachment.IfName,
		in.Pod.Namespace, in.Pod.Name, in.Pod.UID,
	})
	if len(raw) > maxFile {
		return nil, fmt.Errorf("expected at most %d bytes, found %d", maxFile, len(raw))
	}
	return append(raw, '\n'), nil
}

func decode(raw []byte) (Intent, error) {
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return Intent{}, fmt.Errorf("expected a JSON object: %w", err)
	}
	in := Intent{
		Attachment: ipam.Attachment{Network: f.Network, ContainerID: f.ContainerID, IfName: f.IfName},
		Pod:        ipam.Pod{Namespace: f.PodNamespace, Name: f.PodName, UID: f.PodUID},
		Version:    f.Version,
	}
	return in, in.plain()
}

// plain refuses an attachment that no plugin was ever called with.
func (in *Intent) plain() error {
	a := in.Attachment
	if a.Network == "" || a.ContainerID == "" || a.IfName == "" {
		return errors.New("expected network, containerID and ifName, found an empty one")
	}
	return a.Plain()
}
