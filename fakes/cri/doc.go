// Package cri is a pure, stepped model of one node's kubelet and container runtime, as a CNI plugin
// meets them: when a namespace is made, when ADD and DEL are called, with which CNI_NETNS, how
// often, and when never.
//
//	n := cri.New(cri.Config{Runtime: cri.Containerd2}, seed)
//	for _, a := range n.Step(now, &cri.Input{Kind: cri.PodBound, UID: uid, Namespace: "default", Name: "web-0"}) { … do a … }
//	at, ok := n.Next()      // when it wants a tick:
//	n.Step(at, nil)
//
// A world does what the Actions say and brings the outcomes back as Inputs. The life of a pod:
//
//	PodBound             → MakeNetns
//	NetnsMade            → RunPlugin ADD
//	PluginDone           → (CRI-O: RunPlugin CHECK)
//	a tick, 80 to 250 ms → PodStarted; only now does ListSandboxes hold it (dockershim: since NetnsMade)
//	PodDeleted           → nothing yet
//	a tick, 1 to 3 s     → PodStopped, RunPlugin DEL with CNI_NETNS
//	PluginDone           → RemoveNetns, PodGone
//	a tick, ≤ 1 minute   → RunPlugin DEL with an empty CNI_NETNS (evictSandboxes' Stop)
//	PluginDone           → RunPlugin DEL again (Remove stops once more)
//	PluginDone           → SandboxGone
//
// A sandbox has a state, of which a table says what may follow (follows), and beside it the state of its network.
//
// What the runtimes do differently:
//
//	                         containerd-2   -2.1         -1.7-guard   -1.6         crio-1.34    dockershim
//	DELs in a normal life    3              3            3            3            1            1
//	ADD and its DEL failed   forgotten      forgotten    kept; Stop   forgotten    forgotten    kept, DEL again
//	                                                     skips DEL
//	restart during ADD       DEL at Stop    never a DEL  never a DEL  orphaned     forgotten    (kubelet's) DEL at Stop
//	DEL of a Stop fails      again          again        again        again        never again  again, empty CNI_NETNS
//	container in D state     no DEL         no DEL       no DEL       no DEL       DEL, then    DEL, then
//	                                                                               Stop fails   waits
//	deadline of 4 min        plugin killed  killed       killed       killed       ADD goes on  killed
//
// A sandbox forgotten while it still owes a DEL says so: SandboxGone with Lost. Kubelet's part is the same for all:
//
//   - RunPodSandbox again 10 to 15 s after an error, with a new container ID;
//   - StopPodSandbox again, after an error while the pod is being killed, within a second the first time, because its containers'
//     end is noticed, then after 10 to 15 s, and every minute (evictSandboxes) once the pod has gone;
//   - every StopPodSandbox is for all the sandboxes that the pod still has, one after the other, also those stopped before: each
//     new try of a pod that was restarted with its node calls DEL once more for the sandbox of before;
//   - a pod that is deleted during RunPodSandbox still gets it, and its containers, and only then is killed;
//   - a force-deleted pod is killed in the background, in parallel with the next pod of its name.
//
// containerd-2.1 and this kubelet are held to recordings of what kubelet 1.34.2 and containerd 2.1.5 called, in e2e/calls; where
// the code says "recorded", the name that follows is a recording's there.
//
// Sources: containerd 2.3 internal/cri/server (sandbox_run.go, sandbox_stop.go, sandbox_remove.go,
// restart.go), go-cni cni.go, CRI-O 1.36 server/sandbox_network.go and ocicni, kubelet's
// kuberuntime_manager.go, kuberuntime_gc.go and pod_workers.go, and the issues named in the code.
//
// Not modelled: several containers per pod (they stop as one), image pulls, static pods, the CNI
// verbs GC and STATUS (recorded: STATUS every 5 s), two READY sandboxes of one pod that kubelet sees at
// once, and the wait of up to a second for a relist between the steps of a pod worker that succeed.
package cri
