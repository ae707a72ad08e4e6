package kube

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/enilab/enilab/impl/ipam"
)

// Bounds on a list of pods. A node runs at most some hundreds; finished ones stay until they are collected.
const (
	podsPerPage = 50
	mostPages   = 200
	mostPage    = 16 << 20 // bytes; a pod is some 10 KB, and etcd takes 1.5 MB
)

// podList is a v1.PodList, of which nothing else is decoded.
type podList struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"metadata"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	} `json:"items"`
}

// Pods are the pods bound to this node that have not ended (phase Succeeded or Failed). The list is whole, or there is an error.
func (r *Reader) Pods(ctx context.Context) ([]ipam.Pod, error) {
	out, err := r.pods(ctx)
	if expired(err) { // the list took longer than a continue token lives, five minutes: begin again, once
		out, err = r.pods(ctx)
	}
	return out, err
}

func (r *Reader) pods(ctx context.Context) ([]ipam.Pod, error) {
	query := url.Values{"fieldSelector": {"spec.nodeName=" + r.cfg.Node}, "limit": {strconv.Itoa(podsPerPage)}}
	var out []ipam.Pod
	for range mostPages {
		var page podList
		if err := r.get(ctx, "/api/v1/pods", query, mostPage, &page); err != nil {
			return nil, err
		}
		if page.Kind != "PodList" {
			return nil, fmt.Errorf("GET /api/v1/pods: expected a PodList, the answer is of kind %q", page.Kind)
		}
		for i := range page.Items {
			p := &page.Items[i]
			if p.Metadata.Name == "" || p.Metadata.UID == "" {
				return nil, fmt.Errorf("GET /api/v1/pods: a pod without name or UID (%s/%s)", p.Metadata.Namespace, p.Metadata.Name)
			}
			if p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed" {
				out = append(out, ipam.Pod{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID})
			}
		}
		if page.Metadata.Continue == "" {
			return out, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
	return nil, fmt.Errorf("GET /api/v1/pods: more than %d pages of %d pods", mostPages, podsPerPage)
}
