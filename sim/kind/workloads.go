package kind

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/enilab/enilab/sim/kind/cluster"
)

const (
	// podImage is in kind's node images made for enilab, so that nothing has to be pulled.
	podImage = "docker.io/library/busybox:1.35"
	// reserved keeps everything but a scenario's pods away from its nodes: an address that CoreDNS has is one that a line does not expect.
	reserved = "enilab.io/scenario"
	// deletionCost says which of a Deployment's pods go first; the lowest do.
	deletionCost = "controller.kubernetes.io/pod-deletion-cost"
)

// script of a pod: it does nothing, and ends when it is told to.
const script = "trap 'exit 0' TERM; sleep 2147483647 & wait"

// controller makes a scenario's workloads.
type controller struct {
	client kubernetes.Interface
	pods   *pods
	try    func(func(context.Context) error) error // repeats what the API server does not do at once
	kinds  map[string]string                       // of the workloads
	want   map[string]int                          // how many pods
}

func newController(client kubernetes.Interface, p *pods, try func(func(context.Context) error) error) *controller {
	return &controller{client: client, pods: p, try: try, kinds: map[string]string{}, want: map[string]int{}}
}

// create makes a workload on machines; one that exists stays as it is.
func (k *controller) create(name string, count int, kind string, machines []string) error {
	if k.kinds[name] != "" {
		return nil
	}
	k.kinds[name], k.want[name] = kind, count
	meta := metav1.ObjectMeta{Name: name, Namespace: namespaceOfPods, Labels: labelsOf(name)}
	selector := &metav1.LabelSelector{MatchLabels: labelsOf(name)}
	replicas := int32(count)
	return k.try(func(ctx context.Context) (err error) {
		if kind == statefulSet {
			_, err = k.client.AppsV1().StatefulSets(namespaceOfPods).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, Selector: selector, ServiceName: name, Template: template(name, machines),
				PodManagementPolicy: appsv1.ParallelPodManagement}}, metav1.CreateOptions{})
		} else {
			_, err = k.client.AppsV1().Deployments(namespaceOfPods).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: selector, Template: template(name, machines)}}, metav1.CreateOptions{})
		}
		if apierrors.IsAlreadyExists(err) { // an answer was lost
			return nil
		}
		return err
	})
}

// statefulSet is the kind of a workload whose pods keep their names; any other is a Deployment.
const statefulSet = "statefulset"

func labelsOf(workload string) map[string]string { return map[string]string{workloadLabel: workload} }

// template of a pod: on these machines, as many on each as on the others.
func template(workload string, machines []string) corev1.PodTemplateSpec {
	no := false
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(workload)}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "sleep", Image: podImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script}}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: machines}}}}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labelsOf(workload)}}},
		Tolerations: []corev1.Toleration{{Key: reserved, Operator: corev1.TolerationOpExists},
			// A node whose daemon is held for minutes is not ready; its pods stay, as in the models.
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
	}}
}

// scale sets the number of pods. Of a Deployment those that do not run go first, which is its controller's choice everywhere; of the others the
// newest, as in the models, whatever it would choose.
func (k *controller) scale(name string, count int) error {
	kind := k.kinds[name]
	if kind == "" {
		return nil
	}
	k.want[name] = count
	if kind != statefulSet {
		if err := k.mark(name, count); err != nil {
			return err
		}
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)
	return k.try(func(ctx context.Context) (err error) {
		if kind == statefulSet {
			_, err = k.client.AppsV1().StatefulSets(namespaceOfPods).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		} else {
			_, err = k.client.AppsV1().Deployments(namespaceOfPods).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		return err
	})
}

// mark says of the pods beyond a number that they are the first to go.
func (k *controller) mark(name string, keep int) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"-1"}}}`, deletionCost)
	for _, p := range k.wanted(name) {
		if keep--; keep >= 0 {
			continue
		}
		err := k.try(func(ctx context.Context) error {
			_, err := k.client.CoreV1().Pods(namespaceOfPods).Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wanted are a workload's pods that are not being deleted, oldest first.
func (k *controller) wanted(name string) []pod {
	return slices.DeleteFunc(k.pods.of(name), func(p pod) bool { return p.deleting })
}

// roll deletes a workload's oldest pods.
func (k *controller) roll(name string, count int) error {
	victims := k.wanted(name)
	for _, p := range victims[:min(count, len(victims))] {
		if err := k.delete(p, false); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a pod, gracefully or (kubectl delete --grace-period=0 --force) at once.
func (k *controller) delete(p pod, force bool) error {
	uid := types.UID(p.uid)
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if force {
		o.GracePeriodSeconds = new(int64)
	}
	return k.try(func(ctx context.Context) error {
		err := k.client.CoreV1().Pods(namespaceOfPods).Delete(ctx, p.name, o)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, or another one has its name
			return nil
		}
		return err
	})
}

// joinLimit is how long a machine may take to join the cluster.
const joinLimit = 3 * time.Minute

// reserve keeps all pods but a scenario's away from a machine, which may not have joined yet.
func reserve(ctx context.Context, c *cluster.Cluster, machine string) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	nodes := c.Client().CoreV1().Nodes()
	return c.Await(ctx, machine+" to join", func() (string, error) {
		n, err := nodes.Get(ctx, machine, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: reserved, Effect: corev1.TaintEffectNoSchedule})
		_, err = nodes.Update(ctx, n, metav1.UpdateOptions{}) // a conflict is tried again
		return "", err
	})
}
