package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/settings"
)

// TestRecordedMAC: the init step believes what a daemon of this boot has recorded, and nothing else.
func TestRecordedMAC(t *testing.T) {
	const mac = "02:00:00:00:00:01"
	own := netip.MustParseAddr("10.0.0.4")
	good := ipam.Row{Address: own, State: ipam.Departed, Node: &ipam.Facts{Instance: ipam.Instance{ID: "i-1", PrimaryMAC: mac, Address: own},
		ENIs: []ipam.ENI{{ID: "eni-1", MAC: mac, CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: own}}}}
	data, err := ipam.EncodeRun(ipam.Version, 0, []ipam.Row{good})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, boot string
		data       []byte
		want       string
	}{
		{"on record", bootID(), data, mac},
		{"of another boot", "another", data, ""},
		{"torn", bootID(), data[:len(data)/2], ""},
		{"no facts", bootID(), []byte(`{"version":"vpc-cni-ipam/1","allocations":[]}`), ""},
		{"no record", bootID(), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := &settings.Settings{RunDir: dir, Checkpoint: filepath.Join(dir, "ipam.json")}
			if err := os.WriteFile(filepath.Join(dir, bootFile), []byte(c.boot+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.data != nil {
				if err := os.WriteFile(s.Checkpoint, c.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := recordedMAC(s); got != c.want {
				t.Errorf("found %q, expected %q", got, c.want)
			}
		})
	}
}
