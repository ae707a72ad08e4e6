package plugin

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// verb is one ADD, DEL, CHECK, GC or STATUS.
type verb struct {
	name string // as the local protocol says it
	conf conf
	args *skel.CmdArgs
	att  ipam.Attachment
	pod  ipam.Pod
	out  io.Writer

	// override says that CNI_NETNS may be the plugin's own (CNI_NETNS_OVERRIDE, a convention of the library).
	override bool

	log   *slog.Logger
	began time.Time
	ended io.Closer
}

// verb is what the library calls for one whose configuration has to be good.
func (p *program) verb(name string, do func(*verb) error) func(*skel.CmdArgs) error {
	return func(args *skel.CmdArgs) error {
		v, err := p.begin(name, args)
		if err == nil {
			err = do(v)
		}
		return v.end(err)
	}
}

// begin reads configuration and CNI_ARGS. The error says what is wrong with them; the verb is usable beside it.
func (p *program) begin(name string, args *skel.CmdArgs) (*verb, error) {
	v := &verb{name: name, args: args, out: p.out, began: time.Now(), override: strings.EqualFold(args.NetnsOverride, "true") || args.NetnsOverride == "1"}
	args.NetnsOverride = "1" // the library's own check comes too late, and opens whatever CNI_NETNS is: a FIFO has no end
	var bad, badArgs error
	v.conf, bad = parseConf(args.StdinData)
	v.att = ipam.Attachment{Network: v.conf.Name, ContainerID: args.ContainerID, IfName: args.IfName}
	v.pod, badArgs = podArgs(args.Args)
	v.log, v.ended = openLog(v.conf.LogFile, v.conf.LogLevel)
	if bad == nil && badArgs != nil {
		bad = errorf(types.ErrInvalidEnvironmentVariables, "%s: %v", v, badArgs)
	}
	return v, bad
}

// end logs how the verb ended, and passes its error on.
func (v *verb) end(err error) error {
	log := v.log.With("verb", v.name, "network", v.att.Network, "containerID", v.att.ContainerID, "ifName", v.att.IfName,
		"pod", v.pod.String(), "netns", v.args.Netns, "took", time.Since(v.began).String())
	if err != nil {
		log.Error("failed", "code", codeOf(err), "error", err.Error())
	} else {
		log.Info("done")
	}
	v.ended.Close()
	return err
}

// String is the operation and its subject, as every error begins.
func (v *verb) String() string {
	s := "cni " + v.name + " "
	switch {
	case v.att.ContainerID == "":
		return s + v.att.Network
	case v.pod.Name != "":
		return s + v.pod.String() + " (" + v.att.String() + ")"
	}
	return s + v.att.String()
}

// ask is the one call of the daemon. An error means that there is no answer (see again). A daemon that refuses is an answer.
func (v *verb) ask(r *ipc.Request, timeout time.Duration, files ...*os.File) (*ipc.Response, error) {
	r.Version, r.Verb = v.conf.Protocol, v.name
	r.Network, r.ContainerID, r.IfName = v.att.Network, v.att.ContainerID, v.att.IfName
	r.PodNamespace, r.PodName, r.PodUID = v.pod.Namespace, v.pod.Name, v.pod.UID
	r.TimeoutMS = timeout.Milliseconds()
	res, err := call(v.conf.Socket, r, timeout, files)
	if err != nil {
		return nil, err
	}
	v.log.Debug("answer", "verb", r.Verb, "code", res.Code, "text", res.Text, "version", res.Version, "address", res.Address, "veth", res.Veth)
	v.contact().reached(res.Code == 0 && (res.Ready || v.name == ipc.Add))
	return res, nil
}

func call(socket string, r *ipc.Request, timeout time.Duration, files []*os.File) (*ipc.Response, error) {
	c, err := ipc.Dial(socket, timeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(r, timeout+min(grace, timeout), files...)
}

// again is the error of a verb that had no answer.
func (v *verb) again(err error) error {
	return errorf(types.ErrTryAgainLater, "%s: %v; try again", v, err)
}

// refused is the daemon's error; nil when it has none.
func (v *verb) refused(r *ipc.Response) error {
	if r.Code == 0 {
		return nil
	}
	text := r.Text
	if !strings.HasPrefix(text, "cni ") { // the core's own texts name operation and subject
		text = v.String() + ": ipamd refuses: " + text
	}
	if r.Code < 0 {
		return errorf(types.ErrInternal, "%s", text)
	}
	return errorf(uint(r.Code), "%s", text)
}

// names refuses what the library lets pass and what cannot be a key: the attachment stands in a link's alias with spaces
// between its parts, and in JSON.
func (v *verb) names() error {
	for _, c := range v.args.IfName {
		if c == utf8.RuneError || unicode.IsSpace(c) || unicode.IsControl(c) {
			return errorf(types.ErrInvalidEnvironmentVariables, "%s: CNI_IFNAME: expected a name without spaces and control characters, found %q", v, v.args.IfName)
		}
	}
	return nil
}
