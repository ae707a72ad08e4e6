package daemon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
)

// TestRecordedMAC: the init step believes what a daemon of this boot has recorded, and nothing else.
func TestRecordedMAC(t *testing.T) {
	const mac = "02:00:00:00:00:01"
	own := netip.MustParseAddr("10.0.0.4")
	good := ipam.Row{Address: own, State: ipam.Departed, Node: &ipam.Facts{Instance: ipam.Instance{ID: "i-1", PrimaryMAC: mac, Address: own},
		ENIs: []ipam.ENI{{ID: "eni-1", MAC: mac, CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: own}}}}
	data := must.Get(ipam.EncodeRun(ipam.Version, 0, []ipam.Row{good}))(t)
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
			must.Do(t, os.WriteFile(filepath.Join(dir, bootFile), []byte(c.boot+"\n"), 0o600))
			if c.data != nil {
				must.Do(t, os.WriteFile(s.Checkpoint, c.data, 0o600))
			}
			if got := recordedMAC(s); got != c.want {
				t.Errorf("found %q, expected %q", got, c.want)
			}
		})
	}
}

// metadataOf is the instance metadata of a node whose one interface, with this MAC, has so many secondary addresses from 10.0.0.20 on.
func metadataOf(mac string, addresses int) http.Handler {
	leaves := map[string]string{"instance-id": "i-1", "instance-type": "m5.large", "placement/availability-zone": "us-west-2a", "mac": mac,
		"local-ipv4": "10.0.0.10", "network/interfaces/macs/": mac + "/"}
	own := "10.0.0.10"
	for a := netip.MustParseAddr("10.0.0.20"); addresses > 0; a = a.Next() {
		own += "\n" + a.String()
		addresses--
	}
	for leaf, text := range map[string]string{"interface-id": "eni-1", "device-number": "0", "local-ipv4s": own, "security-group-ids": "sg-1",
		"vpc-ipv4-cidr-blocks": "10.0.0.0/16", "subnet-id": "subnet-1", "subnet-ipv4-cidr-block": "10.0.0.0/24"} {
		leaves["network/interfaces/macs/"+mac+"/"+leaf] = text
	}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		text, ok := leaves[strings.TrimPrefix(q.URL.Path, "/latest/meta-data/")]
		switch {
		case q.Method == http.MethodPut:
			_, _ = w.Write([]byte("TOKEN"))
		case ok:
			_, _ = w.Write([]byte(text))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// TestInitTakesTheMACFromMetadata: where it answers, nothing else is asked.
func TestInitTakesTheMACFromMetadata(t *testing.T) {
	md := httptest.NewServer(metadataOf(primaryMAC0, 0))
	t.Cleanup(md.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", md.URL)
	ctx, end := context.WithTimeout(t.Context(), soon)
	defer end()
	dir := t.TempDir()
	s := &settings.Settings{RunDir: dir, Checkpoint: filepath.Join(dir, "ipam.json"), HTTPTimeout: soon}
	if got, err := primaryMAC(ctx, s, slogTo(&buffer{})); err != nil || got != primaryMAC0 {
		t.Errorf("found %q, %v; expected %s", got, err, primaryMAC0)
	}
}

// TestInitSaysWhichFolderIsMissing: one has to be mounted, the other is the image's.
func TestInitSaysWhichFolderIsMissing(t *testing.T) {
	there, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	must.Do(t, os.WriteFile(filepath.Join(there, "aws-cni"), nil, 0o600))
	for _, c := range []struct{ from, to, want string }{{there, missing, "HOST_CNI_BIN_PATH"}, {missing, there, "ENILAB_PLUGIN_DIR"}} {
		err := installPlugins(&settings.Settings{PluginDir: c.from, BinDir: c.to}, slogTo(&buffer{}))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), missing) {
			t.Errorf("from %s to %s: %v; expected it to name %s", c.from, c.to, err, c.want)
		}
	}
}
