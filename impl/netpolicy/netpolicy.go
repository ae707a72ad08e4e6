// Package netpolicy tells a network policy agent of pods: amazon-vpc-cni-k8s's aws-network-policy-agent, or another
// that listens in its place.
//
// The agent (service NPBackend of amazon-vpc-cni-k8s 1.23.1, rpc/rpc.proto) listens on a socket in the CNI's folder on the tmpfs. It
// is told of a pod when its interface is there, and puts the policies that it knows before the pod's first packet: in mode standard none of
// them allows everything, in mode strict nothing. It knows pods by name, and has to be told when one is gone.
//
// Every call is bounded: an agent that hangs holds up no caller for longer than ReachBound and the caller's context
// say.
package netpolicy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/impl/ipam"
)

// Name is the socket's, in amazon-vpc-cni-k8s's folder /var/run/aws-node.
const Name = "npa.sock"

// Bounds of a call.
const (
	ReachBound   = 2 * time.Second  // to connect and to hear that it is an agent: amazon-vpc-cni-k8s's
	enforceBound = 10 * time.Second // of the whole call: an agent that starts many pods at once takes seconds (aws-network-policy-agent #585)
	ForgetBound  = 5 * time.Second
)

// Kinds of failure that are no agent's, by errors.Is.
var (
	ErrAbsent       = errors.New("there is no network policy agent")            // no socket
	ErrNotListening = errors.New("nobody listens on the policy agent's socket") // the agent restarts or was killed
)

// Modes of an agent (NETWORK_POLICY_ENFORCING_MODE).
const (
	Standard = "standard"
	Strict   = "strict"
	None     = "none" // no agent is told of pods
)

// methods of the service, and the fields of their questions: the first two are the pod's name and its namespace in both.
const (
	enforce = "/rpc.NPBackend/EnforceNpToPod"
	forget  = "/rpc.NPBackend/DeletePodNp"

	fieldName, fieldNamespace  = 1, 2
	fieldMode, fieldInterfaces = 3, 4 // of enforce
	fieldSuccess               = 1    // of the answers
)

// Enforce has the agent put a pod's policies in force. The pod may run when there is no error.
func Enforce(ctx context.Context, socket, mode string, p ipam.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, enforceBound)
	defer cancel()
	q := grpclite.AppendNumber(grpclite.AppendText(question(p), fieldMode, mode), fieldInterfaces, 1)
	answer, err := call(ctx, socket, enforce, q)
	if err != nil {
		return err
	}
	ok, err := success(answer)
	if err == nil && !ok {
		err = errors.New("it could not put the pod's policies in force")
	}
	return named(socket, err)
}

// Forget tells the agent that a pod is gone. There is no error when it has been told, whatever it then says: it tries no second time either.
func Forget(ctx context.Context, socket string, p ipam.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, ForgetBound)
	defer cancel()
	_, err := call(ctx, socket, forget, question(p))
	var said *grpclite.Error
	if errors.As(err, &said) && said.Answered {
		return nil
	}
	return err
}

func question(p ipam.Pod) []byte {
	return grpclite.AppendText(grpclite.AppendText(nil, fieldName, p.Name), fieldNamespace, p.Namespace)
}

// call asks the agent.
func call(ctx context.Context, socket, method string, q []byte) ([]byte, error) {
	reach, cancel := context.WithTimeout(ctx, ReachBound)
	defer cancel()
	c, err := grpclite.Dial(reach, socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, named(socket, ErrAbsent)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, named(socket, ErrNotListening)
	case err != nil:
		return nil, named(socket, err)
	}
	defer c.Close()
	answer, err := c.Call(ctx, method, q)
	return answer, named(socket, err)
}

func named(socket string, err error) error {
	if err != nil {
		err = fmt.Errorf("network policy agent at %s: %w", socket, err)
	}
	return err
}

// success reads an answer. A field that is not there is false.
func success(answer []byte) (ok bool, err error) {
	err = grpclite.Each(answer, func(f grpclite.Field) error {
		var n uint64
		if f.Number != fieldSuccess {
			return nil
		}
		err := f.Enum(&n)
		ok = n != 0
		return err
	})
	return ok, err
}
