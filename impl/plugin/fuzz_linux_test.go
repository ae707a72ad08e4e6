package plugin

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// FuzzPluginInput: whatever configuration, environment and daemon's answer there is, the plugin ends with a result or with
// an error that a runtime understands.
func FuzzPluginInput(f *testing.F) {
	conf := `{"cniVersion":"1.1.0","name":"aws-cni","type":"aws-cni","mtu":"9001","pluginLogLevel":"debug","cni.dev/valid-attachments":[{"containerID":"a","ifname":"b"}],` +
		`"prevResult":{"interfaces":[{"name":"eth0","sandbox":"/x","mac":"254"}],"ips":[{"interface":0,"address":"10.0.0.1/32"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1","table":7}]}}`
	args := "IgnoreUnknown=1;K8S_POD_NAMESPACE=d;K8S_POD_NAME=p"
	for verb := range uint8(len(verbs)) {
		f.Add(verb, []byte(conf), "c1", "/x", "eth0", args, []byte(`{"version":2,"address":"10.0.0.1","veth":"eni1","ready":true}`))
		f.Add(verb, []byte(strings.Replace(conf, "1.1.0", "0.4.0", 1)), "c1", "/proc/self/ns/net", "eth0", args, []byte(`{"code":11,"text":"not found"}`))
		f.Add(verb, []byte(`{"name":"x","cniVersion":"1.1.0","mtu":7,"localProtocol":0}`), "", "", "a b", ";=;", []byte(nil))
		f.Add(verb, []byte(`null`), "c", "/proc/self/ns/mnt", "..", "x", []byte(`[]`))
	}
	dir := f.TempDir()
	d := answering(f, filepath.Join(dir, "s"))
	f.Fuzz(func(t *testing.T, verb uint8, conf []byte, id, netns, ifName, args string, answer []byte) {
		for name, value := range map[string]string{
			"CNI_COMMAND": verbs[int(verb)%len(verbs)], "CNI_CONTAINERID": id, "CNI_NETNS": netns, "CNI_IFNAME": ifName,
			"CNI_ARGS": args, "CNI_PATH": "/opt/cni/bin", "CNI_NETNS_OVERRIDE": "",
		} {
			if strings.ContainsRune(value, 0) {
				return // no process has it in its environment
			}
			t.Setenv(name, value)
		}
		d.answer <- answer
		defer func() { <-d.answer }()
		var out bytes.Buffer
		exit := run(confined(conf, dir), &out)
		os.RemoveAll(filepath.Join(dir, "del"))
		os.Remove(filepath.Join(dir, servedFile))
		if exit == 0 {
			if out.Len() > 0 && !json.Valid(out.Bytes()) {
				t.Fatalf("success printed %q", out.String())
			}
			return
		}
		var e struct {
			CNIVersion, Msg, Details string
			Code                     uint
		}
		if err := json.Unmarshal(out.Bytes(), &e); err != nil || e.Code == 0 || e.CNIVersion == "" || e.Msg == "" {
			t.Fatalf("exit %d printed %q (%v)", exit, out.String(), err)
		}
		for _, w := range []string{"not found", "no such file"} {
			if strings.Contains(e.Msg+e.Details, w) {
				t.Fatalf("%q says %q", e.Msg, w)
			}
		}
	})
}

var verbs = []string{"ADD", "DEL", "CHECK", "GC", "STATUS", "UPDATE"}

// confined is the configuration with its paths in the test's own folder, for a fuzzer writes anywhere.
func confined(conf []byte, dir string) []byte {
	var keys map[string]json.RawMessage
	if json.Unmarshal(conf, &keys) != nil || keys == nil {
		return append([]byte{}, conf...)
	}
	path := func(p string) json.RawMessage {
		raw, _ := json.Marshal(filepath.Join(dir, p))
		return raw
	}
	keys["socket"], keys["stateDir"], keys["pluginLogFile"] = path("s"), path(""), path("log")
	if raw := keys["timeoutMS"]; len(raw) > 3 {
		delete(keys, "timeoutMS")
	}
	out, err := json.Marshal(keys)
	if err != nil {
		return nil
	}
	return out
}

// answerer is a daemon that says what it is told to, well-formed or not; nothing is hanging up.
type answerer struct{ answer chan []byte }

func answering(f *testing.F, path string) *answerer {
	l := must.Get(net.Listen("unix", path))(f)
	f.Cleanup(func() { l.Close() })
	d := &answerer{make(chan []byte, 1)}
	go accept.Each(l.Accept, d.talk)
	return d
}

func (d *answerer) talk(c net.Conn) {
	defer c.Close()
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
		return
	}
	answer := <-d.answer
	d.answer <- answer // an ADD may call twice
	if len(answer) > 0 {
		c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	}
}
