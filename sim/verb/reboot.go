package verb

var reboot = &Verb{
	Name: "reboot", On: onNode,
	Doc:     "reboots the machine: namespaces and /run are gone, /var/lib stays",
	Source:  "k8s #133081",
	Strike:  func(t *Target) Strike { return t.Kernel.Reboot() },
	Draw:    &Draw{Weight: 2, Draw: onOneNode("reboot")},
	DrawAny: &Draw{Weight: 2, Draw: onOneNode("reboot")},
}
