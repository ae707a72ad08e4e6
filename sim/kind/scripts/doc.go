// Package scripts lets a real kubelet and a real container runtime live through what the incidents are made of, with a recorder in
// front of the CNI plugin: a pod's life, a failing ADD, a force delete, restarts in the middle of a call. What the runtime called is
// the same with every plugin that gives the same answers; so lives are recorded once with simple plugins (sim/kind/record), the
// recordings are the golden files of sim/kind/trace, and what a cluster with enilab's own CNI records is compared with them.
//
//	b := &lives.Bench{Client: client, Node: "enilab-worker", Plugin: "aws-cni", Restart: restart}
//	b.Install(ctx, dir)                      // shims in the node container
//	for _, l := range lives.Lives() {
//		recording, err := lives.Record(ctx, b, l)
//		runs, err := trace.Read(bytes.NewReader(recording))
//		diff := trace.Compare(golden, trace.Text(runs))
//	}
//
// A life has a namespace of its own and removes it. Its pods are put on the node without a scheduler, and tolerate everything.
package scripts
