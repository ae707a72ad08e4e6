package ipam

import (
	"strings"
	"testing"
)

// TestAnADDSaysWhatEC2Said: beside what it says of the node's addresses.
func TestAnADDSaysWhatEC2Said(t *testing.T) {
	n := newborn(t)
	n.Phase = serving
	n.Troubles[troubleEC2] = "EC2 refuses AttachNetworkInterface: AttachmentLimitExceeded"
	if text := n.noAddress(0, &Add{}); !strings.HasSuffix(text, n.Troubles[troubleEC2]) {
		t.Errorf("%s", text)
	}
}
