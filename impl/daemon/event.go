package daemon

// event has an Event made about the node. An API server that does not take it changes nothing else, and is asked again, a few times.
func (d *daemon) event(reason, message string, tries int) {
	if d.c.Tell == nil || tries == 0 {
		return
	}
	d.go_(func() {
		err := d.c.Tell(d.ctx, reason, message)
		if err == nil || d.ctx.Err() != nil {
			return
		}
		d.post(func() {
			d.log.Warn("no Event could be made about the node", "reason", reason, "err", err)
			d.after(d.clock.Now()+eventRetry, func() { d.event(reason, message, tries-1) })
		})
	})
}
