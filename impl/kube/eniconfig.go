package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/enilab/enilab/impl/ipam"
)

// configsPath is of the resource that amazon-vpc-cni-k8s defines (charts/aws-vpc-cni/crds of 1.23.0).
const configsPath = "/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/"

// mostConfig is how many bytes an ENIConfig has; etcd takes one and a half million.
const mostConfig = 2 << 20

// objectName is what Kubernetes takes for a name (RFC 1123, subdomains). A label or an annotation may have anything.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// mostName is how long such a name is.
const mostName = 253

// config is an ENIConfig, of which nothing else is decoded.
type config struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Subnet         string   `json:"subnet"`
		SecurityGroups []string `json:"securityGroups"`
	} `json:"spec"`
}

// ENIConfig reads this node's labels and annotations, and then the ENIConfig that the settings find by them. That there is none, or no
// such resource, is an answer: Missing. What the API server does not say is an error.
func (r *Reader) ENIConfig(ctx context.Context, s *ipam.Settings) (ipam.ENIConfig, error) {
	n, err := r.object(ctx)
	if err != nil {
		return ipam.ENIConfig{}, err
	}
	out := ipam.ENIConfig{Name: s.ConfigName(n.Metadata.Labels, n.Metadata.Annotations)}
	if len(out.Name) > mostName || !objectName.MatchString(out.Name) {
		out.Missing = true
		return out, nil
	}
	path := configsPath + url.PathEscape(out.Name)
	var c config
	err = r.get(ctx, path, nil, mostConfig, &c)
	var refused *Refused
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		out.Missing = true
		return out, nil
	case err != nil:
		return ipam.ENIConfig{}, err
	case c.Kind != "ENIConfig" || c.Metadata.Name != out.Name:
		return ipam.ENIConfig{}, fmt.Errorf("GET %s: expected the ENIConfig %s, the answer is the %s %q", path, out.Name, c.Kind, c.Metadata.Name)
	}
	out.Subnet, out.Groups = c.Spec.Subnet, c.Spec.SecurityGroups
	return out, nil
}
