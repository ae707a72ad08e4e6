// Package plugin is the CNI plugin aws-cni: the verbs of the CNI specification, each of them one call of the daemon.
//
// The plugin decides nothing about an address. It checks what it was given, opens the pod's network namespace and an
// rtnetlink socket inside it, hands both to the daemon (package local), and prints the daemon's answer as a CNI result. What
// it does by itself is what only it can do: enter the pod's namespace, and end a DEL when no daemon answers.
//
//	ADD      the daemon makes the veth pair; the result is read from the namespace. Repeated, it prints the same. Where the
//	         daemon says so a network policy agent puts the pod's policies in force first (package netpolicy); if not, all is undone
//	DEL      never fails for want of a namespace, a result, a daemon, a policy agent or a known attachment (rule F): a daemon or an
//	         agent that does not answer, or that says "try again", leaves a durable intent (package ipc) and success
//	CHECK    the daemon's word, then the namespace itself, against prevResult
//	GC       the list of valid attachments goes to the daemon; a list that is missing is refused, it is not an empty one
//	STATUS   fails before the first start and after the daemon was out of reach for a minute, else never (rule J)
//	VERSION  reads nothing
//
// # Errors
//
// An error is JSON on standard output, {cniVersion, code, msg, details}, and exit code 1. Codes are those of the CNI
// specification 1.1.0 (section "Error") and of its Go library, and the daemon's own from 100 up (ipam.Code…):
//
//	1    the CNI version, or the version of the local protocol
//	4    CNI_…: a variable is missing or useless (its name is in the text); an interface of that name exists
//	5    a DEL could be neither done nor noted; a result could not be printed
//	6    the network configuration is no JSON
//	7    the network configuration says something that cannot be
//	8    CNI_NETNS is not a network namespace, or is the plugin's own
//	11   try again: the daemon does not run, did not answer in time, or says so; so does the network policy agent
//	50   STATUS: not available
//	100  the attachment has another network namespace
//	101  CHECK found a difference
//
// No text holds "not found" or "no such file": go-cni takes an error with these words for a success
// (github.com/containerd/go-cni, Remove).
//
// # Configuration
//
// amazon-vpc-cni-k8s's keys are accepted. pluginLogFile and pluginLogLevel say where the plugin logs; vethPrefix and mtu are the
// daemon's to decide (its own settings have them) and are compared with what the daemon made, a difference is logged. Our
// own keys: "socket" (the daemon's), "stateDir" (DEL intents and what STATUS remembers), "localProtocol" (the version
// that the plugin says it speaks), "timeoutMS" (its patience with the daemon). A key that is not known is ignored.
package plugin
