package swarm_test

import (
	"testing"

	"github.com/enilab/enilab/sim/swarm"
)

// TestCause: names, numbers, addresses and times are not part of a cause, words are.
func TestCause(t *testing.T) {
	for _, c := range [][2]string{
		{"node-1 freed eni-0ae6170280656bcc0 with 3 live pods on it, as web-9vxf52hqbl: expected none",
			"node-# freed # with # live pod on it, as #: expected none"},
		{"live pod web-bhbxjdxcsf (aws-cni/8fbfb9a2/eth0, address 10.0.0.20) has been unreachable (the address is on no ENI that is attached to the node) for 1m30.5s on node-12: expected repair within 1m30s",
			"live pod # (#, address #) has been unreachable (the address is on no ENI that is attached to the node) for # on node-#: expected repair within #"},
		{"1 DELs on node-1 still have to be repeated", "# DEL on node-# still have to be repeated"},
		{"12 DELs on node-3 still have to be repeated", "# DEL on node-# still have to be repeated"},
		{"has 2 free addresses: WARM_IP_TARGET=2 MAX_ENI=0", "has # free addresses: WARM_IP_TARGET=# MAX_ENI=#"},
		{"eni-1 has the security groups sg-a/sg-b", "# has the security groups #"},
		{"EC2 has given it 14.", "EC2 has given it #."},
		{"a well-known thing, re-attached", "a well-known thing, re-attached"},
		{"", ""},
	} {
		if got := swarm.Cause(c[0]); got != c[1] {
			t.Errorf("%q:\nexpected %q\nfound    %q", c[0], c[1], got)
		}
		if again := swarm.Cause(c[1]); again != c[1] {
			t.Errorf("%q: the cause of a cause is another: %q", c[1], again)
		}
	}
}
