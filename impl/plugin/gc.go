package plugin

import (
	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// gc tells the daemon what lives. The daemon frees what kernel and runtime do not contradict (rules A, K).
func (v *verb) gc() error {
	if !v.conf.Validly { // cnitool gc sends no list and means "all"; an answer that was lost on the way looks the same
		return errorf(types.ErrInvalidNetworkConfig, "%s: %s is missing, which is not an empty list; name the attachments that live", v, keyValid)
	}
	r := &ipc.Request{}
	seen := map[types.GCAttachment]bool{}
	for _, a := range v.conf.Valid {
		if !seen[a] {
			seen[a] = true
			r.Valid = append(r.Valid, ipam.Attachment{Network: v.conf.Name, ContainerID: a.ContainerID, IfName: a.IfName})
		}
	}
	res, err := v.ask(r, v.conf.Timeout)
	if err != nil {
		return v.again(err)
	}
	return v.refused(res)
}
