package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

const policiesPath = "/apis/networking.k8s.io/v1/networkpolicies"

// HasPolicies says whether the cluster has a NetworkPolicy, in whichever namespace.
func (r *Reader) HasPolicies(ctx context.Context) (bool, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := r.get(ctx, policiesPath, url.Values{"limit": {"1"}}, mostPage, &list); err != nil {
		return false, err
	}
	if list.Kind != "NetworkPolicyList" {
		return false, fmt.Errorf("GET %s: expected a NetworkPolicyList, the answer is of kind %q", policiesPath, list.Kind)
	}
	return len(list.Items) > 0, nil
}
