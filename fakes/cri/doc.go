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
// What the runtimes do differently:
//
//	                         containerd-2   -1.7-guard   -1.6         crio-1.34    dockershim
//	DELs in a normal life    3              3            3            1            1
//	ADD and its DEL failed   forgotten      kept; Stop   forgotten    forgotten    kept, DEL again
//	                                        skips DEL
//	restart during ADD       DEL at Stop    never a DEL  orphaned     forgotten    (kubelet's) DEL at Stop
//	DEL of a Stop fails      again          again        again        never again  again, empty CNI_NETNS
//	container in D state     no DEL         no DEL       no DEL       DEL, then    DEL, then
//	                                                                  Stop fails   waits
//	deadline of 4 min        plugin killed  killed       killed       ADD goes on  killed
//
// A sandbox forgotten while it still owes a DEL says so: SandboxGone with Lost. Kubelet's part is the same
// for all: RunPodSandbox again 10 to 15 s after an error, with a new container ID; StopPodSandbox
// again 10 to 15 s after an error while the pod is being killed, and every minute (evictSandboxes)
// afterwards; a force-deleted pod is killed in the background, in parallel with the next pod of its
// name.
//
// Sources: containerd 2.3 internal/cri/server (sandbox_run.go, sandbox_stop.go, sandbox_remove.go,
// restart.go), go-cni cni.go, CRI-O 1.36 server/sandbox_network.go and ocicni, kubelet's
// kuberuntime_manager.go, kuberuntime_gc.go and pod_workers.go, and the issues named in the code.
//
// Not modelled: several containers per pod (they stop as one), image pulls, static pods, the CNI
// verbs GC and STATUS, and two READY sandboxes of one pod that kubelet sees at once.
package cri
