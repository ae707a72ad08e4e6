package deploy

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// grace is how long the daemon may take to end, in seconds: EKS's, and more than daemon.StopBound.
const grace = 10

func (o *Options) daemonSet() (*appsv1.DaemonSet, error) {
	volumes, err := o.volumes()
	if err != nil {
		return nil, err
	}
	atATime := intstr.FromString("10%")
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: labels(), Annotations: shared()},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector()},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &atATime}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: o.pod(volumes)},
		},
	}, nil
}

func (o *Options) pod(volumes []corev1.Volume) corev1.PodSpec {
	return corev1.PodSpec{
		HostNetwork:                   true, // the namespace that it is there for
		PriorityClassName:             "system-node-critical",
		ServiceAccountName:            name,
		TerminationGracePeriodSeconds: new(int64(grace)),
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // no node is Ready before it has a network
		Affinity:                      affinity(),
		SecurityContext:               &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		InitContainers:                []corev1.Container{o.initContainer()},
		Containers:                    []corev1.Container{o.daemon()},
		Volumes:                       volumes,
	}
}

// affinity leaves out the nodes whose network is not an instance's ENIs: Fargate, hybrid nodes, and EKS Auto Mode's, which have one
// built in.
func affinity() *corev1.Affinity {
	in := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			in(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
			in(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64", "arm64"),
			in("eks.amazonaws.com/compute-type", corev1.NodeSelectorOpNotIn, "fargate", "hybrid", "auto"),
		}}},
	}}}
}

// container is what both have in common.
func (o *Options) container(name string, command []string, mounts []mount, capabilities ...corev1.Capability) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           o.Image,
		ImagePullPolicy: corev1.PullPolicy(o.PullPolicy),
		Command:         command,
		Env:             o.environment(),
		Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("25m")}},
		SecurityContext: &corev1.SecurityContext{
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities},
			Privileged:               new(false), // amazon-vpc-cni-k8s's init container has true, which a merge would keep
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, // why it ended is its last line
		VolumeMounts:             volumeMounts(mounts),
	}
}

// initContainer needs no privileged container as amazon-vpc-cni-k8s's does: it sets rp_filter over netlink, and not in /proc/sys,
// which a container may only read.
func (o *Options) initContainer() corev1.Container {
	return o.container("aws-vpc-cni-init", []string{"/ipamd", "init"}, o.initMounts(), "NET_ADMIN")
}

func (o *Options) daemon() corev1.Container {
	c := o.container(name, o.Command, o.daemonMounts(), "NET_ADMIN", "NET_RAW")
	c.ReadinessProbe, c.LivenessProbe = readiness(), liveness()
	return c
}

// Times of the probes, in seconds: EKS's. The daemon answers within a second; the rest is the runtime's, which starts a process for it.
const (
	readyDelay   = 1
	aliveDelay   = 60
	probeTimeout = 10
)

// readiness is whether this daemon has taken up its work, so that a rolling update may go on. liveness is whether it answers, whatever it
// says: one that has no addresses would have none after a restart either.
func readiness() *corev1.Probe { return probe(readyDelay, "/ipamd", "status", "--probe=readiness") }
func liveness() *corev1.Probe  { return probe(aliveDelay, "/ipamd", "status", "--probe=liveness") }

func probe(delay int32, command ...string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}, InitialDelaySeconds: delay, TimeoutSeconds: probeTimeout}
}
