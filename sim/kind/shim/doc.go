// Package shim is what a CNI plugin needs that stands in front of another one and must not be noticed: the recorder
// (sim/kind/recorder) and the source of faults (sim/kind/faulty).
//
// A runtime looks for a plugin in a list of folders, which it passes on as CNI_PATH, and takes the first file of the plugin's
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
package shim
