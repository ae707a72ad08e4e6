package plugin

import (
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/ipc"
)

// statusTimeout keeps STATUS within a second: go-cni calls it under a lock, and a STATUS that hangs blocks the runtime.
const statusTimeout = 700 * time.Millisecond

// unreachable is how long the daemon may be out of reach before STATUS says so. Any error makes kubelet taint the node
// NoExecute (go-cni 1.1.11 and later), so an ordinary restart of the daemon must not be one (rule J).
const unreachable = time.Minute

// status says whether the network is available.
func (v *verb) status() error {
	r, err := v.asked()
	switch {
	case err != nil:
		since, served := v.contact().missed(clock.Boot().Now())
		if !served {
			return errorf(types.ErrPluginNotAvailable, "%s: no pod can be taken before ipamd's first start: %v", v, err)
		}
		if since >= unreachable {
			return errorf(types.ErrPluginNotAvailable, "%s: ipamd is out of reach since %v: %v", v, since.Round(time.Second), err)
		}
		v.log.Warn("ipamd is out of reach", "since", since.String(), "bound", unreachable.String(), "error", err.Error())
	case !r.Ready && !v.contact().served():
		return errorf(types.ErrPluginNotAvailable, "%s: ipamd has started and does not serve yet: %s", v, reasons(r))
	case !r.Ready:
		v.log.Warn("ipamd cannot take pods", "reasons", reasons(r))
	}
	return nil
}

// asked calls the daemon within STATUS's own patience.
func (v *verb) asked() (*ipc.Response, error) {
	c, err := ipc.Dial(v.conf.Socket, statusTimeout/2)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r, err := c.Call(&ipc.Request{
		Version: v.conf.Protocol, Verb: ipc.Status, Network: v.conf.Name, TimeoutMS: statusTimeout.Milliseconds(),
	}, statusTimeout)
	if err == nil {
		v.contact().reached(r.Ready && r.Code == 0)
	}
	return r, err
}

// reasons is why the daemon cannot take pods, in its own words.
func reasons(r *ipc.Response) string {
	switch {
	case len(r.Reasons) > 0:
		return strings.Join(r.Reasons, "; ")
	case r.Text != "":
		return r.Text
	}
	return "it gives no reason"
}
