// Package node is one node of a laboratory: real namespaces of a real kernel, in which the real daemon and the real plugin run at
// their production paths, and a client by which the laboratory's main process acts on it.
//
//	n, err := node.Start(node.Spec{Name: "node-1", Self: []string{"enilab", "node"}, Daemon: []string{"bin/ipamd"}, Plugin: "bin/aws-cni", Conflist: conflist})
//	inode, err := n.MakeNetns("cni-1")
//	err = n.RunPlugin(7, node.Run{Verb: cri.ADD, ContainerID: id, IfName: "eth0", Netns: inode, Namespace: "default", Name: "web-0"})
//	done := <-n.Events() // PluginDone, Op 7
//	err = n.Close()
//
// # The helper
//
// Start executes the caller's own binary again in new mount, network, PID, IPC and UTS namespaces; whatever Spec.Self names there
// calls Main, which never returns while the laboratory lives. That process, the helper, is PID 1 of the node: it makes the node's file
// system, starts the daemon and the plugins, keeps the pods' namespaces, and answers the client over a socket pair (file descriptor 3).
//
// Nothing of a node exists outside of its namespaces. The root is a tmpfs that is mounted inside the new mount namespace, whose
// propagation was made private first; the host's programs are bound there read-only. So nothing has to be removed when the
// laboratory ends, however it ends: the helper dies with its parent (PR_SET_PDEATHSIG, and the end of the socket pair, whichever
// comes first), the kernel kills every other process of the PID namespace with it, and the last process takes mounts, links, rules and
// pods' namespaces along. The kernel destroys network namespaces a little later, on a worker of its own.
//
// # What is where
//
//	/opt/cni/bin/aws-cni         Spec.Plugin, read-only
//	/app/NAME                    Spec.Daemon[0], read-only
//	/etc/cni/net.d/              Spec.Conflist as 10-aws.conflist
//	/run/aws-node                a tmpfs: allocations, intents, the daemon's socket; a reboot empties it
//	/var/lib/aws-node            what survives a reboot
//	/var/lib/cni                 libcni's cache; survives a reboot
//	/run/netns/NAME              pods' namespaces, mounted as a runtime does
//	/run/containerd, /run/enilab empty: for sockets of the laboratory, which it may open below Node.Root
//	/var/log/aws-routed-eni      ipamd.out has what the daemon printed last, and ipamd.out.1 what it printed before that; 64 MiB in all
//
// /var/run is a relative link to /run: an absolute one would lead a walk through Node.Root to the host's own /run.
//
// # Pods
//
// A pod is a network namespace and nothing else: its ICMP is the kernel's, and the helper listens in it on TCP port ResponderPort and
// answers with the address that the peer has, as text. A namespace dies when it is unmounted unless it is held (Node.Hold), as a
// process in state D holds it; the helper itself keeps nothing else of it.
//
// # Plugins
//
// Plugins run through libcni, as a runtime runs them: the configuration that is in /etc/cni/net.d at that moment, libcni's cache, CNI_ARGS
// with the pod's name and UID, a deadline that ends in SIGKILL. GC and STATUS run the binary directly, because libcni's GC would first
// call DEL for every attachment of its cache that is not listed as valid.
//
// Linux and root only (see Privileged); elsewhere Start says so.
package node
