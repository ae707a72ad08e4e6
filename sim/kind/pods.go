package kind

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// namespaceOfPods is where a scenario's pods are.
const namespaceOfPods = "default"

// workloadLabel is on every pod of a scenario, with its workload's name.
const workloadLabel = "enilab.io/workload"

// pod is an object of the API server that belongs to a scenario.
type pod struct {
	serial   int // in the order in which they were made
	uid      string
	name     string
	workload string
	ordinal  bool   // its name is its workload's with a number, as a StatefulSet's
	node     string // the machine's name
	running  bool   // its phase
	ready    bool   // kubelet says that its containers run
	deleting bool
	address  netip.Addr
}

// pods are the scenario's, as the API server tells of them.
type pods struct {
	mu      sync.Mutex
	byUID   map[string]*pod
	serial  int
	changes map[string]uint64 // by machine
	stop    chan struct{}
}

// watchPods begins to follow the scenario's pods.
func watchPods(ctx context.Context, client kubernetes.Interface) (*pods, error) {
	p := &pods{byUID: map[string]*pod{}, changes: map[string]uint64{}, stop: make(chan struct{})}
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespaceOfPods),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = workloadLabel }))
	i := f.Core().V1().Pods().Informer()
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.put(o) },
		UpdateFunc: func(_, o any) { p.put(o) },
		DeleteFunc: p.drop,
	})
	if err != nil {
		return nil, err
	}
	f.Start(p.stop)
	synced := make(chan struct{})
	go func() {
		if cache.WaitForCacheSync(p.stop, i.HasSynced) {
			close(synced)
		}
	}()
	select {
	case <-synced:
		return p, nil
	case <-ctx.Done():
		p.close()
		return nil, fmt.Errorf("watch the pods: %w", ctx.Err())
	}
}

func (p *pods) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
}

func (p *pods) put(o any) {
	k, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.byUID[string(k.UID)]
	if q == nil {
		p.serial++
		q = &pod{serial: p.serial, uid: string(k.UID), name: k.Name, workload: k.Labels[workloadLabel]}
		_, q.ordinal = k.Labels["apps.kubernetes.io/pod-index"]
		p.byUID[q.uid] = q
	}
	q.node = k.Spec.NodeName
	q.running, q.ready, q.deleting = k.Status.Phase == corev1.PodRunning, isReady(k), k.DeletionTimestamp != nil
	q.address, _ = netip.ParseAddr(k.Status.PodIP)
	p.changes[q.node]++
}

func isReady(k *corev1.Pod) bool {
	return slices.ContainsFunc(k.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (p *pods) drop(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	k, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.byUID[string(k.UID)]; q != nil {
		p.changes[q.node]++
		delete(p.byUID, q.uid)
	}
}

// made counts the objects that were ever seen.
func (p *pods) made() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.serial)
}

// changed counts what has changed on a machine.
func (p *pods) changed(node string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes[node]
}

// all pods, oldest first.
func (p *pods) all() []pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]pod, 0, len(p.byUID))
	for _, q := range p.byUID {
		out = append(out, *q)
	}
	slices.SortFunc(out, func(a, b pod) int { return cmp.Compare(a.serial, b.serial) })
	return out
}

// of are a workload's, oldest first.
func (p *pods) of(workload string) []pod {
	return slices.DeleteFunc(p.all(), func(q pod) bool { return q.workload != workload })
}

// find is the newest pod of a name. A Deployment's pods have names that nobody knows in advance, so WORKLOAD-N is the N-th oldest of
// them, from 0, also in the models (fakes/kube, Find).
func (p *pods) find(name string) (pod, bool) {
	list := p.all()
	for _, q := range slices.Backward(list) {
		if q.name == name {
			return q, true
		}
	}
	cut := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[cut+1:])
	if cut < 0 || err != nil || n < 0 {
		return pod{}, false
	}
	for _, q := range list {
		if q.workload == name[:cut] && !q.ordinal {
			if n == 0 {
				return q, true
			}
			n--
		}
	}
	return pod{}, false
}

// knows says whether there is an object with that UID.
func (p *pods) knows(uid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byUID[uid] != nil
}

// unsettled names a pod that is not what its workload wants yet; "" is none. One that is stuck cannot end: a Deployment
// has another one in its place, a StatefulSet waits for it. Nor does it become ready.
func (p *pods) unsettled(want map[string]int, stuck func(*pod) bool) string {
	have := map[string]int{}
	for _, q := range p.all() {
		still := stuck(&q)
		if q.deleting && still {
			if q.ordinal {
				have[q.workload]++
			}
			continue
		}
		if (!q.ready || q.deleting) && !still {
			return "pod " + q.name + " is not ready, or is being deleted"
		}
		have[q.workload]++
	}
	for _, w := range slices.Sorted(maps.Keys(want)) {
		if have[w] != want[w] {
			return fmt.Sprintf("%d of %d pods of %s are there", have[w], want[w], w)
		}
	}
	return ""
}

// watchLimit is how long the API server may take to tell of all pods.
const watchLimit = 30 * time.Second
