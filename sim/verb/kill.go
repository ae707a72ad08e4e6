package verb

var kill = &Verb{
	Name: "kill", On: onNode,
	Doc:      "SIGKILL to the daemon; kubelet starts it again after two seconds",
	Source:   "rule I",
	Strike:   func(t *Target) Strike { return t.Daemon.Kill() },
	Needs:    Needs{Daemon: true},
	Draw:     &Draw{Weight: 5, Draw: onAnyNode("kill"), Starts: true},
	DrawAny:  &Draw{Weight: 5, Draw: onAnyNode("kill")},
	AtDaemon: true,
}
