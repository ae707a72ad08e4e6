package kube

import "strings"

// Events drains what kubelets have to hear, in order. The slice is valid until the next
// call of Events.
func (c *Cluster) Events() []Event {
	out := c.events
	c.events = c.drained[:0]
	c.drained = out
	return out
}

// find is the newest pod of a name, "namespace/name" or a name in the default namespace. A
// Deployment's pod may be called by "workload-N", the N-th oldest of its pods, from 0: a scenario cannot know its
// generated name in advance.
func (c *Cluster) find(name string) (int32, bool) {
	key := name
	if !strings.Contains(name, "/") {
		key = DefaultNamespace + "/" + name
	}
	if i, ok := c.byName[key]; ok {
		return i, true
	}
	return c.findNth(name)
}

func (c *Cluster) findNth(name string) (int32, bool) {
	cut := strings.LastIndexByte(name, '-')
	if cut < 0 {
		return none, false
	}
	li, ok := c.byLoad[name[strings.IndexByte(name, '/')+1:cut]]
	n, digits := number(name[cut+1:])
	if !ok || !digits || c.workloads[li].Kind != Deployment {
		return none, false
	}
	if ns, _, there := strings.Cut(name, "/"); there && ns != c.workloads[li].Namespace {
		return none, false
	}
	i := c.workloads[li].pods.first
	for ; i != none && n > 0; n-- {
		i = c.pods[i].ofWorkload.next
	}
	return i, i != none
}

// number reads up to six decimal digits.
func number(s string) (n int, ok bool) {
	if s == "" || len(s) > 6 {
		return 0, false
	}
	for _, r := range []byte(s) {
		if r < '0' || r > '9' {
			return 0, false
		}
		n = n*10 + int(r-'0')
	}
	return n, true
}

// Find is the newest pod object of a name: "name" in the default namespace or "namespace/name". A
// Deployment's pods are also found as WORKLOAD-N, the N-th oldest.
func (c *Cluster) Find(name string) (Pod, bool) {
	i, ok := c.find(name)
	if !ok {
		return Pod{}, false
	}
	return c.pods[i].Pod, true
}

// Get is the object with this UID.
func (c *Cluster) Get(uid string) (Pod, bool) {
	i, ok := c.byUID[uid]
	if !ok {
		return Pod{}, false
	}
	return c.pods[i].Pod, true
}

// ListPods is what the API server says about a node, oldest binding first. The slice is valid until the next
// ListPods or Pods.
func (c *Cluster) ListPods(n int) []Pod {
	c.list = c.list[:0]
	if n < 0 || n >= len(c.nodes) {
		return c.list
	}
	for i := c.nodes[n].pods.first; i != none; i = c.pods[i].onNode.next {
		c.list = append(c.list, c.pods[i].Pod)
	}
	return c.list
}

// Pods are a workload's objects, oldest first, those that are being deleted included. The slice is
// valid until the next ListPods or Pods.
func (c *Cluster) Pods(workload string) []Pod {
	c.list = c.list[:0]
	li, ok := c.byLoad[workload]
	if !ok {
		return c.list
	}
	for i := c.workloads[li].pods.first; i != none; i = c.pods[i].ofWorkload.next {
		c.list = append(c.list, c.pods[i].Pod)
	}
	return c.list
}

// Workloads are the names of the workloads, in order of creation.
func (c *Cluster) Workloads() []string {
	names := make([]string, len(c.workloads))
	for i := range c.workloads {
		names[i] = c.workloads[i].Name
	}
	return names
}

// Len counts the pod objects.
func (c *Cluster) Len() int { return len(c.byUID) }

// Ready counts the pods that run and are not being deleted.
func (c *Cluster) Ready() int { return c.ready }
