package judge

// look counts that an invariant was looked at: one that nothing happened for has not held, it has met nothing.
func (a *Auditor) look(id ID) { a.looks[id]++ }

// looked counts what Settle has judged of a node, or of the cloud.
func (a *Auditor) looked(c *Snapshot, settled bool) {
	if c.Node > 0 {
		a.look(I6)
	}
	if !settled {
		return
	}
	a.look(I5)
	a.look(I20)
	if c.Up && c.View != nil {
		a.look(I11)
		a.look(I12)
	}
}

// FlowHeld says that a TCP connection from the VPC to a living pod answered (I17).
func (a *Auditor) FlowHeld() { a.look(I17) }

// Looks is how often an invariant was looked at, since the world began.
func (a *Auditor) Looks(id ID) int64 {
	if int(id) >= ids {
		return 0
	}
	return a.looks[id]
}

// Unreachable says whether a node's last snapshot showed that an attachment's pod gets no packets.
func (a *Auditor) Unreachable(node int, containerID string) bool {
	if node < 0 || node >= len(a.nodes) {
		return false
	}
	for i := range a.nodes[node].faults {
		if f := &a.nodes[node].faults[i]; f.invariant == I10 && f.att.ContainerID == containerID {
			return true
		}
	}
	return false
}
