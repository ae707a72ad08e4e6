package cri

import (
	"errors"
	"net/netip"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/impl/ipam"
)

// Labels that kubelet puts on every sandbox (k8s.io/kubelet, pkg/types/labels.go). They are what the metadata is made from, and
// stand in where a runtime leaves it empty.
const (
	labelNamespace = "io.kubernetes.pod.namespace"
	labelName      = "io.kubernetes.pod.name"
	labelUID       = "io.kubernetes.pod.uid"
)

// Values of api.proto's enumerations.
const (
	stateReady  = 0 // PodSandboxState
	networkNode = 2 // NamespaceMode
)

// readList reads a ListPodSandboxResponse.
func readList(m []byte) ([]ipam.Sandbox, error) {
	var out []ipam.Sandbox
	err := grpclite.Each(m, func(f grpclite.Field) error {
		if f.Number != 1 {
			return nil
		}
		s, err := readSandbox(f)
		out = append(out, s)
		return err
	})
	return out, err
}

// readSandbox reads a PodSandbox.
func readSandbox(f grpclite.Field) (s ipam.Sandbox, err error) {
	var labels ipam.Pod
	state := uint64(stateReady)
	err = f.Message(func(f grpclite.Field) error {
		switch f.Number {
		case 1:
			return f.Text(&s.ID)
		case 2:
			return readMetadata(f, &s.Pod)
		case 3:
			return f.Enum(&state)
		case 5:
			return readLabel(f, &labels)
		}
		return nil
	})
	if err == nil && s.ID == "" {
		err = errors.New("the runtime lists a sandbox without an ID")
	}
	s.Ready = state == stateReady
	s.Pod = ipam.Pod{Namespace: either(s.Pod.Namespace, labels.Namespace), Name: either(s.Pod.Name, labels.Name), UID: either(s.Pod.UID, labels.UID)}
	return s, err
}

// readMetadata reads a PodSandboxMetadata.
func readMetadata(f grpclite.Field, p *ipam.Pod) error {
	return f.Message(func(f grpclite.Field) error {
		switch f.Number {
		case 1:
			return f.Text(&p.Name)
		case 2:
			return f.Text(&p.UID)
		case 3:
			return f.Text(&p.Namespace)
		}
		return nil
	})
}

// readLabel reads an entry of a map of strings.
func readLabel(f grpclite.Field, p *ipam.Pod) error {
	var key, value string
	err := f.Message(func(f grpclite.Field) error {
		switch f.Number {
		case 1:
			return f.Text(&key)
		case 2:
			return f.Text(&value)
		}
		return nil
	})
	switch key {
	case labelNamespace:
		p.Namespace = value
	case labelName:
		p.Name = value
	case labelUID:
		p.UID = value
	}
	return err
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// detail is what PodSandboxStatus says of a sandbox that never changes.
type detail struct {
	host    bool       // in the host's network: no address of its own
	address netip.Addr // invalid: it has none yet, which is asked again
}

// Paths of PodSandboxStatusResponse, by field numbers.
var (
	pathStatus   = []int{1}
	pathIP       = []int{1, 5, 1}       // status.network.ip
	pathMoreIP   = []int{1, 5, 2, 1}    // status.network.additional_ips.ip
	pathNetworks = []int{1, 6, 1, 2, 1} // status.linux.namespaces.options.network
)

// readDetail reads a PodSandboxStatusResponse.
func readDetail(m []byte) (detail, error) {
	found, mode := false, uint64(0)
	texts := []string{""}
	err := errors.Join(
		grpclite.Follow(m, pathStatus, func(grpclite.Field) error { found = true; return nil }),
		grpclite.Follow(m, pathNetworks, func(f grpclite.Field) error { return f.Enum(&mode) }),
		grpclite.Follow(m, pathIP, func(f grpclite.Field) error { return f.Text(&texts[0]) }),
		grpclite.Follow(m, pathMoreIP, func(f grpclite.Field) error {
			texts = append(texts, "")
			return f.Text(&texts[len(texts)-1])
		}))
	switch {
	case err != nil:
		return detail{}, grpclite.ErrWire
	case !found:
		return detail{}, errors.New("the answer is empty")
	case mode == networkNode:
		return detail{host: true}, nil
	}
	a, err := chosen(texts)
	return detail{address: a}, err
}

// chosen is the IPv4 address of a sandbox; a runtime with two families names either first.
func chosen(texts []string) (netip.Addr, error) {
	for _, text := range texts {
		if text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return a, err
		}
		if a = a.Unmap(); a.Is4() {
			return a, nil
		}
	}
	return netip.Addr{}, nil
}
