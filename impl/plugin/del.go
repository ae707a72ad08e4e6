package plugin

import (
	"errors"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// del takes an attachment away. Neither the namespace nor a result nor a good configuration is needed for it: runtimes call
// it with the configuration of the day, after the namespace has gone, and again and again.
func (p *program) del(args *skel.CmdArgs) error {
	v, bad := p.begin(ipc.Del, args)
	if bad != nil {
		v.log.Warn("going on with what can be read", "error", bad.Error())
	}
	return v.end(v.del())
}

func (v *verb) del() error {
	if err := v.names(); err != nil {
		return err
	}
	inode, own := namespaceInode(v.args.Netns)
	if own && !v.override {
		return v.ownNamespace()
	}
	r, err := v.ask(&ipc.Request{Inode: inode}, v.conf.Timeout)
	if err != nil {
		return v.note("does not answer", err)
	}
	if r.Code == ipam.CodeTryAgain { // it recovers, stops, or cannot write: what it has to do later it will find in the folder
		return v.note("cannot do it now", errors.New(r.Text))
	}
	if err := v.refused(r); err != nil {
		return err
	}
	return v.forget(r)
}

// note writes the DEL down for a daemon that does not answer, or not yet. That done, it has succeeded (rule F).
func (v *verb) note(state string, why error) error {
	if err := ipc.WriteIntent(v.intents(), v.intent()); err != nil {
		return errorf(ipam.CodeIO, "%s: ipamd %s (%v), and the DEL could not be noted for it: %v; try again", v, state, why, err)
	}
	v.log.Warn("noted for ipamd, which "+state, "folder", v.intents(), "error", why.Error())
	return nil
}

func (v *verb) intents() string { return filepath.Join(v.conf.StateDir, filepath.Base(ipc.IntentDir)) }

func (v *verb) intent() ipc.Intent {
	return ipc.Intent{Attachment: v.att, Pod: v.pod, Version: v.conf.Protocol}
}

// ownNamespace refuses to work on the plugin's own namespace, which is the node's. The library refuses it too, but only
// after the verb has run (skel, pluginMain).
func (v *verb) ownNamespace() error {
	return errorf(types.ErrInvalidNetNS, "%s: CNI_NETNS=%s is the plugin's own network namespace, expected a container's", v, v.args.Netns)
}
