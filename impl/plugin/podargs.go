package plugin

import (
	"fmt"
	"strings"

	"github.com/enilab/enilab/impl/ipam"
)

// podArgs reads the pod's names from CNI_ARGS, as kubelet's runtimes write it: KEY=VALUE;KEY=VALUE, in any order. What can
// be read is returned beside an error, for DEL goes on.
func podArgs(args string) (p ipam.Pod, err error) {
	for pair := range strings.SplitSeq(args, ";") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok && pair != "" && err == nil {
			err = fmt.Errorf("CNI_ARGS: expected KEY=VALUE pairs with ; between them, found %q", pair)
		}
		switch key {
		case "K8S_POD_NAMESPACE":
			p.Namespace = value
		case "K8S_POD_NAME":
			p.Name = value
		case "K8S_POD_UID":
			p.UID = value
		}
	}
	return p, err
}
