// Package deploy is how the daemon gets onto a cluster's nodes: the manifests of its DaemonSet. Package image, below, makes the image
// that they name; aws-node.yaml is what they are when nobody says anything, for kubectl apply:
//
//	make image                                           # bin/enilab-cni.tar; push it, and name it in the manifest
//	kubectl apply -f impl/deploy/aws-node.yaml
//
// # A drop-in
//
// The DaemonSet takes the place of EKS's: its name, namespace, selector, labels, containers, environment, volumes and priority are those of
// amazon-vpc-cni-k8s 1.23.1, so that `kubectl set env daemonset aws-node …` and whatever else watches it go on working. An annotation with an
// IAM role stays on the ServiceAccount, for apply leaves alone what it does not know. What differs:
//
//   - one image for both containers, and it has no shell;
//   - no privileged container: the init container sets rp_filter over netlink, and needs CAP_NET_ADMIN alone;
//   - all other capabilities are dropped, CAP_DAC_OVERRIDE among them, so the host's folders have to be root's, as they are on EKS's
//     machine images; the root file system is read-only; the runtime's seccomp profile holds;
//   - the role allows three verbs on nodes and pods, which are all that package kube uses; nothing is written;
//   - /var/lib/aws-node, where EC2 intents survive a reboot, and the runtime's folder are mounted; /run/xtables.lock is not;
//   - no port, for the daemon serves no metrics yet, and no container aws-eks-nodeagent. Where that one has to stay, keep EKS's manifest
//     and change the images and volumes of the other two.
//
// # The environment
//
// It is EKS's, for both containers, plus MY_POD_NAME and MY_POD_NAMESPACE, by which the daemon knows its own sandbox in the runtime's
// list. [Settings] says what the daemon will make of it: EKS's values stop nothing, and one is worth a line in its log,
// ENABLE_SUBNET_DISCOVERY=true. Set CLUSTER_NAME, or leaked ENIs are not looked for.
//
// A path that is set to where no volume is mounted is an error of [Manifests]: what the daemon wrote there would end with its container.
//
// Where SELinux keeps containers away from the runtime's socket (Bottlerocket), the daemon says that the runtime cannot be believed,
// serves, and frees nothing on the runtime's word; ENILAB_RUNTIME_SOCKET=none says that there is none.
package deploy
