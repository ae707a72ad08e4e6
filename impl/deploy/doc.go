// Package deploy is how the daemon gets onto a cluster's nodes: the manifests of its DaemonSet. Package image, below, makes the image
// that they name; aws-node.yaml has them with all defaults, for kubectl apply:
//
//	make image                                           # bin/enilab-cni.tar; push it, and name it in the manifest
//	kubectl apply --server-side --force-conflicts --field-manager=enilab -f impl/deploy/aws-node.yaml
//
// # A drop-in
//
// The DaemonSet takes the place of EKS's: its name, namespace, selector, labels, containers, volumes and priority are those of
// amazon-vpc-cni-k8s 1.23.1, so that `kubectl set env daemonset aws-node …` and whatever else watches it go on working. Applied over EKS's
// objects it leaves alone what it does not say: an IAM role on the ServiceAccount, the container aws-eks-nodeagent, the operator's settings. So
// it says what has to be ours, also where that is the default ([corev1.SecurityContext].Privileged is false), and nothing else. Tests merge it
// over EKS's objects as an API server does (testdata/upstream.yaml), and ask an API server's own validation (folder validate). What differs:
//
//   - one image for both containers, and it has no shell;
//   - no privileged container: the init container sets rp_filter over netlink, and needs CAP_NET_ADMIN alone;
//   - all other capabilities are dropped, CAP_DAC_OVERRIDE among them, so the host's folders have to be root's, as they are on EKS's
//     machine images; the root file system is read-only; the runtime's seccomp profile holds;
//   - the role has a name of its own, and allows three verbs on nodes and pods, which are all that package kube uses; nothing is written;
//   - /var/lib/aws-node, where EC2 intents survive a reboot, and the runtime's folder are mounted; /run/xtables.lock is not;
//   - no port, for the daemon serves no metrics yet, and no container aws-eks-nodeagent, which stays where it is.
//
// # The environment
//
// Nothing is said but what only the pod knows: MY_NODE_NAME, and MY_POD_NAME and MY_POD_NAMESPACE, by which the daemon knows its own sandbox
// in the runtime's list. What EKS's manifest says besides are the daemon's defaults, or the operator's will, which applying must not overwrite.
// [Settings] says what the daemon will make of it. Leaked ENIs are swept within CLUSTER_NAME or, where nobody
// has set it, among those that bear no cluster's name.
//
// A path that is set to where no volume is mounted is an error of [Manifests]: what the daemon wrote there would end with its container.
//
// Where SELinux keeps containers away from the runtime's socket (Bottlerocket), the daemon says that the runtime cannot be believed,
// serves, and frees nothing on the runtime's word; ENILAB_RUNTIME_SOCKET=none says that there is none.
package deploy
