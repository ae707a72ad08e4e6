// Package netpolicytest is a network policy agent for tests: gRPC's own server, and protobuf's own reader with the messages of amazon-vpc-cni-k8s's
// rpc.proto as descriptors, so that nothing in it shares a mistake with the client.
package netpolicytest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Call is one that the agent has got.
type Call struct {
	Method     string // EnforceNpToPod, DeletePodNp
	Name       string // of the pod
	Namespace  string
	Mode       string
	Interfaces int
}

// Agent listens on a socket.
type Agent struct {
	grpc *grpc.Server
	done chan struct{}

	mu    sync.Mutex
	calls []Call
	reply func(context.Context, Call) (success bool, err error)
}

// Start is an agent that is content with everything, until it is stopped or the test ends.
func Start(t testing.TB, socket string) *Agent {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{grpc: grpc.NewServer(), done: make(chan struct{}), reply: func(context.Context, Call) (bool, error) { return true, nil }}
	a.grpc.RegisterService(a.service(), nil)
	go func() { defer close(a.done); _ = a.grpc.Serve(l) }()
	t.Cleanup(a.Stop)
	return a
}

// Stop ends the agent and its socket.
func (a *Agent) Stop() {
	a.grpc.Stop()
	<-a.done
}

// Calls are all that it has got.
func (a *Agent) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// Answer is what it says from now on.
func (a *Agent) Answer(f func(context.Context, Call) (success bool, err error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply = f
}

// message types, as rpc.proto has them.
var types = func() map[string]protoreflect.MessageDescriptor {
	text, number, truth := descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_BOOL
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	field := func(no int32, name string, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &no, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("rpc.proto"), Package: proto.String("rpc"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			message("EnforceNpRequest", field(1, "K8S_POD_NAME", text), field(2, "K8S_POD_NAMESPACE", text), field(3, "NETWORK_POLICY_MODE", text), field(4, "InterfaceCount", number)),
			message("EnforceNpReply", field(1, "Success", truth)),
			message("DeleteNpRequest", field(1, "K8S_POD_NAME", text), field(2, "K8S_POD_NAMESPACE", text)),
			message("DeleteNpReply", field(1, "Success", truth)),
		}}, nil)
	if err != nil {
		panic(err)
	}
	out := map[string]protoreflect.MessageDescriptor{}
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		out[string(m.Name())] = m
	}
	return out
}()

// service is NPBackend.
func (a *Agent) service() *grpc.ServiceDesc {
	method := func(name, request, reply string) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in, out := dynamicpb.NewMessage(types[request]), dynamicpb.NewMessage(types[reply])
			if err := decode(in); err != nil {
				return nil, err
			}
			ok, err := a.take(ctx, name, in)
			out.Set(types[reply].Fields().ByName("Success"), protoreflect.ValueOfBool(ok))
			return out, err
		}}
	}
	return &grpc.ServiceDesc{ServiceName: "rpc.NPBackend", Methods: []grpc.MethodDesc{
		method("EnforceNpToPod", "EnforceNpRequest", "EnforceNpReply"), method("DeletePodNp", "DeleteNpRequest", "DeleteNpReply")}}
}

func (a *Agent) take(ctx context.Context, method string, in *dynamicpb.Message) (bool, error) {
	c := Call{Method: method}
	in.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch f.Name() {
		case "K8S_POD_NAME":
			c.Name = v.String()
		case "K8S_POD_NAMESPACE":
			c.Namespace = v.String()
		case "NETWORK_POLICY_MODE":
			c.Mode = v.String()
		case "InterfaceCount":
			c.Interfaces = int(v.Int())
		}
		return true
	})
	if len(in.GetUnknown()) > 0 {
		c.Method += " with fields that are none"
	}
	a.mu.Lock()
	a.calls = append(a.calls, c)
	reply := a.reply
	a.mu.Unlock()
	return reply(ctx, c)
}
