package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/netpolicy"
	"github.com/enilab/enilab/internal/must"
)

// foreignDelOf is a DelNetworkRequest.
func foreignDelOf(id string) (m []byte) {
	for _, f := range []struct {
		number int
		text   string
	}{{1, "pod-" + id}, {2, "default"}, {3, id}, {5, "PodDeleted"}, {6, "eth0"}, {7, "aws-cni"}, {8, id}, {9, "v1.23.0"}, {10, "uid"}} {
		m = grpclite.AppendText(m, f.number, f.text)
	}
	return m
}

// foreignCall is what amazon-vpc-cni-k8s's plugin does, but for the plugin.
func (r *rig) foreignCall(method string, message []byte) error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	c, err := grpclite.Dial(ctx, r.socket())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Call(ctx, method, message)
	return err
}

// assigned says whether an attachment of that container has an address.
func (r *rig) assigned(id string) bool {
	return slices.ContainsFunc(r.view().Rows, func(row ipam.Row) bool {
		return row.State == ipam.Assigned && row.Att.ContainerID == id
	})
}

// TestForeignPlugin: amazon-vpc-cni-k8s's plugin beside this daemon is told what is wrong, and what it deletes is released.
func TestForeignPlugin(t *testing.T) {
	r := newRig(t, 2).start().serves()
	add := []byte{}
	for number, text := range []string{1: "web-0", 2: "default", 3: "one", 4: "/proc/1/ns/net", 5: "eth0", 6: "aws-cni", 7: "one", 8: "v1.23.0"} {
		if text != "" {
			add = grpclite.AppendText(add, number, text)
		}
	}
	for _, message := range [][]byte{add, append(add, 200)} { // the second ends in half a field
		err := r.foreignCall(foreignAdd, message)
		for _, want := range []string{"web-0", "aws-cni/one/eth0", "amazon-vpc-cni-k8s's", `"v1.23.0"`, "ipamd init"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ADD was told %v, expected something with %s", err, want)
			}
		}
	}
	if r.assigned("one") {
		t.Error("its ADD got an address")
	}
	r.add("one")
	if err := r.foreignCall(foreignDel, append(foreignDelOf("one"), 200)); err != nil {
		t.Errorf("a DEL that cannot be read was told %v; expected the answer without Success", err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.c.RunDir, intentDir, "*.json")); len(left) > 0 || !r.assigned("one") {
		t.Errorf("a DEL that cannot be read is done: %v", left)
	}
	if err := r.foreignCall(foreignDel, foreignDelOf("one")); err == nil || !strings.Contains(err.Error(), foreignUnknown) {
		t.Errorf("DEL was told %v, expected %q, which is a success that touches nothing", err, foreignUnknown)
	}
	r.eventually("the row is released", func() bool { return !r.assigned("one") })
	if err := r.foreignCall(foreignDel, foreignDelOf("never")); err == nil || !strings.Contains(err.Error(), foreignUnknown) {
		t.Errorf("DEL of what never was: %v", err)
	}
	if err := r.foreignCall("/rpc.CNIBackend/Another", nil); grpclite.CodeOf(err) != grpclite.Unimplemented {
		t.Errorf("another method: %v", err)
	}

	// Who speaks HTTP/2 and no gRPC is told to people, and nobody else is.
	const stranger = "is no plugin that ipamd knows"
	c := must.Get(net.Dial("unix", r.socket()))(t)
	defer c.Close()
	must.Get(c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 9))))(t)
	r.eventually("a stranger is told to people", func() bool { return strings.Contains(r.log.String(), stranger) })

	r.add("two")
	dir := filepath.Join(r.c.RunDir, intentDir)
	must.Do(t, os.RemoveAll(dir))
	must.Do(t, os.WriteFile(dir, nil, 0o600))
	if err := r.foreignCall(foreignDel, foreignDelOf("two")); err != nil {
		t.Errorf("a DEL that cannot be kept was told %v; expected the answer without Success, after which the plugin fails", err)
	}
	r.end()
	if n := strings.Count(r.log.String(), stranger); n != 1 {
		t.Errorf("%d strangers, expected one\n%s", n, r.log)
	}
}

// verbatim is a codec that leaves messages alone.
type verbatim struct{}

func (verbatim) Name() string { return "verbatim" }

func (verbatim) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (verbatim) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }

// TestOlderPlugin: up to 1.22 it asks over TCP, where nobody knows who asks: it is told the same, and nothing is done.
func TestOlderPlugin(t *testing.T) {
	r := newRig(t, 2)
	r.c.Rival = "127.0.0.1:0"
	r.start().serves()
	_, address, _ := strings.Cut(r.log.String(), "address=")
	address, _, _ = strings.Cut(address, "\n")
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	call := func(method string, message []byte) error { // a plugin connects, asks once, and is gone
		g, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		var got []byte
		return g.Invoke(ctx, method, message, &got, grpc.ForceCodec(verbatim{}))
	}
	if err := call(foreignAdd, grpclite.AppendText(nil, 1, "web-0")); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "ipamd init") {
		t.Errorf("ADD was told %v, expected that the plugin is another's", err)
	}
	r.add("one")
	if err := call(foreignDel, foreignDelOf("one")); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), foreignUnknown) {
		t.Errorf("DEL was told %v, expected %q, which is a success that touches nothing", err, foreignUnknown)
	}
	if v := r.view(); v.Requests != 0 || !r.assigned("one") {
		t.Errorf("somebody's DEL over TCP was done: %+v", v)
	}
	if left, _ := filepath.Glob(filepath.Join(r.c.RunDir, intentDir, "*.json")); len(left) > 0 {
		t.Errorf("it was kept as an intent: %v", left)
	}
	mute, err := net.Dial("tcp", address) // holds nothing up
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	r.end()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("it has ended, and still listens")
	}
	// A process that another test forks has the lock, too, until it executes its program.
	r.eventually("who says nothing does not keep the node from the next daemon", func() bool {
		f, err := lock(r.c.RunDir)
		if err == nil {
			f.Close()
		}
		return err == nil
	})
}

// configsReply is NetworkPolicyAgentConfigReply of 1.23's rpc.proto, for protobuf's own reader.
func configsReply(t *testing.T) *dynamicpb.Message {
	field := func(no int32, name string, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &no, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	file := must.Get(protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("rpc.proto"), Package: proto.String("rpc"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("NetworkPolicyAgentConfigReply"), Field: []*descriptorpb.FieldDescriptorProto{
			field(1, "NetworkPolicyMode", descriptorpb.FieldDescriptorProto_TYPE_STRING), field(2, "MultiNICEnabled", descriptorpb.FieldDescriptorProto_TYPE_BOOL)}}}}, nil))(t)
	return dynamicpb.NewMessage(file.Messages().Get(0))
}

// askMode asks what a policy agent asks at its start: the mode, whether there are several network cards, and whether the answer has
// something that no agent knows.
func askMode(t *testing.T, target string) (mode string, cards, unknown bool, err error) {
	t.Helper()
	g := must.Get(grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	got := configsReply(t)
	fields := got.Descriptor().Fields()
	err = g.Invoke(ctx, "/rpc.ConfigServerBackend/GetNetworkPolicyConfigs", &emptypb.Empty{}, got)
	return got.Get(fields.ByName("NetworkPolicyMode")).String(), got.Get(fields.ByName("MultiNICEnabled")).Bool(), len(got.GetUnknown()) > 0, err
}

// TestPolicyAgentStarts: before anything else amazon-vpc-cni-k8s's policy agent asks the daemon what mode it shall be in, and ends when nobody says
// it: since 1.23 on the daemon's socket, before that over TCP. It is gRPC's own client that asks.
func TestPolicyAgentStarts(t *testing.T) {
	for setting, want := range map[string]string{netpolicy.Standard: "standard", netpolicy.Strict: "strict", "": "none"} {
		t.Run("mode "+setting, func(t *testing.T) {
			r := newRig(t, 2)
			r.c.Rival, r.c.PolicyMode = "127.0.0.1:0", setting
			r.start()
			r.eventually("ipamd listens over TCP", func() bool { return strings.Contains(r.log.String(), "ipamd answers older plugins") })
			_, address, _ := strings.Cut(r.log.String(), "address=")
			address, _, _ = strings.Cut(address, "\n")
			for _, target := range []string{"unix://" + r.socket(), "passthrough:///" + address} {
				mode, cards, unknown, err := askMode(t, target)
				if err != nil || mode != want || cards || unknown {
					t.Errorf("%s: the agent hears %q, several cards %t, %v; expected %q", target, mode, cards, err, want)
				}
			}
		})
	}
}

// TestForeignPluginItself is the same with the plugin of a release: ENILAB_SYSTEMS/amazon-vpc-cni-k8s/VERSION/aws-cni.
func TestForeignPluginItself(t *testing.T) {
	list, _ := filepath.Glob(filepath.Join(os.Getenv("ENILAB_SYSTEMS"), "amazon-vpc-cni-k8s", "1.2[3-9]*", "aws-cni"))
	if os.Getenv("ENILAB_SYSTEMS") == "" || len(list) == 0 {
		t.Skip("needs a plugin of amazon-vpc-cni-k8s 1.23 or later: ENILAB_SYSTEMS names no folder with amazon-vpc-cni-k8s/VERSION/aws-cni")
	}
	r, _ := realNode(t, 4)
	r.start().serves()
	pod := newNamespace(t)
	files, _ := pod.pass(t)
	netns := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), files[0].Fd())
	plugin := func(verb string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		// The plugin's socket has a fixed path, which is ours in a mount namespace of its own.
		c := exec.CommandContext(ctx, "/bin/sh", "-c", `mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/aws-node && mount --bind "$1" /run/aws-node && exec "$2"`,
			"sh", r.c.RunDir, list[len(list)-1])
		c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		c.WaitDelay = time.Second
		c.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID=one", "CNI_IFNAME=eth0", "CNI_PATH=/none", "CNI_NETNS="+netns,
			"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=pod-one;K8S_POD_INFRA_CONTAINER_ID=one")
		c.Stdin = strings.NewReader(`{"cniVersion":"0.4.0","name":"aws-cni","type":"aws-cni","vethPrefix":"eni","mtu":"9001","pluginLogFile":"` +
			filepath.Join(r.c.RunDir, "plugin.log") + `","pluginLogLevel":"DEBUG"}`)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		err := c.Run()
		return out.String() + errs.String(), err
	}
	out, err := plugin("ADD")
	var told struct {
		Code         int
		Msg, Details string
	}
	if json.Unmarshal([]byte(out), &told) != nil || err == nil || !strings.Contains(out, "the plugin is amazon-vpc-cni-k8s's") || !strings.Contains(out, "ipamd init") {
		t.Errorf("ADD: %v, printed %s; expected that it says whose the plugin is", err, out)
	}
	t.Logf("ADD: %s %s", told.Msg, told.Details)
	if r.assigned("one") {
		t.Error("its ADD got an address")
	}
	if out := r.must(addOf("one"), files...); out.Code != 0 {
		t.Fatalf("add: %+v\n%s", out, r.log)
	}
	if out, err := plugin("DEL"); err != nil {
		t.Errorf("DEL: %v, printed %s", err, out)
	}
	r.eventually("the row is released", func() bool { return !r.assigned("one") })
}
