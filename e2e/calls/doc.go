// Package calls records what a real kubelet and a real container runtime call a CNI plugin with, in the lives that incidents are made of: a
// pod's life, a failing ADD, a force delete, restarts in the middle of a call. What the runtime calls is the same with every plugin that gives
// the same answers; so lives are recorded once with simple plugins (e2e/calls/record), the texts of the recordings are the golden files, the
// model of the runtime (fakes/cri) is held to them by this package's test, and what a cluster with enilab's own CNI records is compared with
// them by the suite:
//
//	shim, err := calls.Compile(ctx, calls.Shim)
//	b := &calls.Bench{API: api, Node: "enilab-worker", Plugin: "aws-cni", Restart: restart}
//	b.Install(ctx, shim)                     // in the node container
//	for _, l := range calls.Lives() {
//		recording, err := calls.Record(ctx, b, l)
//		list, err := calls.Read(bytes.NewReader(recording))
//		diff := calls.Differs(l.Name, calls.Text(list))
//	}
//
// A life has a namespace of its own and removes it. Its pods are put on the node without a scheduler, and tolerate everything.
//
// # The shim
//
// A shim (e2e/calls/shim) stands in front of a plugin and is not noticed. It records ([RecordingFile]), or is the source of faults
// ([faultsFile]). A runtime looks for a plugin in a list of folders, which it passes on as CNI_PATH, and takes the first file of the plugin's
// name. So a shim is installed under the plugin's own name in a folder that is earlier in that list, and runs the next file of its
// name. That way
//
//   - the runtime calls exactly what it would call otherwise: the conflist, the plugin's type, stdin and environment are the same;
//   - an installer that puts the real plugin into /opt/cni/bin by rename, as aws-node's init container does at every roll of
//     its DaemonSet, meets nobody: the shim is not there (a shim that takes the place of the real file, with that one moved aside,
//     would be gone after the first roll, and a wrapper type in the conflist would change stdin, and the list that the
//     daemon writes itself);
//   - shims stand one behind another.
//
// containerd from 2.1 has the list in its configuration (cni.bin_dirs); CRI-O has plugin_dirs.
//
// # The text
//
// A recording is told so that two of them can be compared: which calls a runtime made for each pod, with what, and how they ended.
//
//	pod web-0
//	  sandbox-1 of pod-1
//	    ADD eth0 netns 1.1.0: ok
//	    DEL eth0 netns prev 1.1.0: ok
//	    DEL eth0 empty 1.1.0: ok
//	    DEL eth0 empty 1.1.0: ok
//	  sandbox-2 of pod-2, sandbox-1 still up
//	    ADD eth0 netns 1.1.0: error 11
//	    …
//
// A line is a call: verb, CNI_IFNAME, what was at CNI_NETNS (netns: a namespace; gone: a path, and nothing there; empty: no path),
// prev when there was a prevResult, the configuration's version, and the outcome (ok; error and its code; killed: it never answered).
//
// What differs between two runs of the same story is left out: a pod's UIDs and container IDs are ordinals by first appearance, addresses and
// times are not told, and neither is the order of calls for different sandboxes, which only chance and kubelet's minute decide. What
// matters of it is told with a sandbox's first call: which earlier sandboxes of that pod name were not down by then (down: a DEL ended in
// success). Within a sandbox calls are in the order in which they began; one that began before the call before it had ended says so.
package calls
