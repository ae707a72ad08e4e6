// Package operatorfaults is what an operator can do to a node, and what can be done to one: services that are silent, refuse or throttle, settings
// that contradict each other, records that are damaged, file systems that cannot be written, capabilities that are missing, a second
// daemon, a plugin that is called with nonsense.
//
// It has no code of its own but its tests. Each of them is a line of docs/ipamd.md: the real daemon and the real plugin in a node's
// namespaces (package node), in front of the models' servers, on a clock that the test moves. A test never asks whether the daemon
// noticed; it asks what an operator would: is it still up, what does STATUS say, what is in the log, how often was the service asked,
// do the pods that run still answer packets, and is it ready again when the trouble has ended.
//
// The tests need root and Linux; elsewhere they say so and are skipped.
package operatorfaults
