// Package settings reads the daemon's environment: every variable that amazon-vpc-cni-k8s 1.23.1 has, with its name, type and
// default, and a few of our own that begin with ENILAB_.
//
// Nothing is ignored in silence. A value that cannot be, a feature that is switched on and is not there, and settings that contradict
// each other are Problems; all of them are found at once. One that stops the node says so (Problem.Stops): the daemon then stays up,
// takes no pods and changes nothing, for half a configuration is another network. The others are worth a line in the
// log: an unknown name that looks like one of these, or a variable that has no effect here.
//
// An empty value is an unset variable, as manifests write it.
package settings
