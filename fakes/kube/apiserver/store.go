package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// historyLimit is how many changes are remembered: a watch from before them must begin anew.
const historyLimit = 4096

// firstVersion is larger than 1, so that a client that makes versions up is found out.
const firstVersion = 1000

// key names an object. All versions of a group have the same objects.
type key struct{ group, plural, namespace, name string }

// object is one that is there. Its data is exchanged, never changed.
type object struct {
	key     key
	data    map[string]any
	version uint64
	source  any            // the Cluster's own; nil: the object lives here
	base    map[string]any // source, as data
}

// change is one step of the history. before is nil for an object that is new, after for one that has gone.
type change struct {
	version       uint64
	key           key
	before, after map[string]any
}

// store has all objects and how they came about.
type store struct {
	now       func() time.Time
	resources []*resource
	objects   map[key]*object
	version   uint64 // of the latest change
	oldest    uint64 // changes after this one are all in history
	history   []change
	changed   chan struct{} // closed at the next change
	shots     snapshots
}

func newStore(now func() time.Time) *store {
	s := &store{now: now, objects: map[key]*object{}, version: firstVersion, oldest: firstVersion, changed: make(chan struct{})}
	s.serve(builtin()...)
	for _, name := range [...]string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		s.needNamespace(name)
	}
	return s
}

// needNamespace makes a namespace that is not there.
func (s *store) needNamespace(name string) {
	k := key{plural: "namespaces", name: name}
	if s.objects[k] == nil {
		s.set(k, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name,
			"labels": map[string]any{"kubernetes.io/metadata.name": name}}, "spec": map[string]any{"finalizers": []any{"kubernetes"}},
			"status": map[string]any{"phase": "Active"}})
	}
}

// find is the resource of a request's path.
func (s *store) find(group, version, plural string) *resource {
	for _, r := range s.resources {
		if r.group == group && r.plural == plural && r.version == version {
			return r
		}
	}
	return nil
}

// list are the objects of a resource, by namespace and name.
func (s *store) list(group, plural string) []*object {
	var out []*object
	for k, o := range s.objects {
		if k.group == group && k.plural == plural {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int {
		return strings.Compare(a.key.namespace+"\x00"+a.key.name, b.key.namespace+"\x00"+b.key.name)
	})
	return out
}

// set makes or exchanges an object: data is the store's from now on. It says what the object is now; an object that stays as it was keeps
// its version.
func (s *store) set(k key, data map[string]any) *object {
	o := s.objects[k]
	var before map[string]any
	meta := metaOf(data)
	if o != nil {
		before = o.data
		meta["resourceVersion"] = text(metaOf(before), "resourceVersion")
		if reflect.DeepEqual(before, data) {
			return o
		}
	} else {
		o = &object{key: k}
		s.objects[k] = o
		if text(meta, "creationTimestamp") == "" {
			meta["creationTimestamp"] = s.now().UTC().Format(time.RFC3339)
		}
		if text(meta, "uid") == "" {
			meta["uid"] = s.uid(k)
		}
	}
	s.version++
	o.data, o.version = data, s.version
	meta["resourceVersion"] = format(s.version)
	s.note(change{s.version, k, before, data})
	if k.group == crdGroup && k.plural == crds {
		s.serve(served(data)...)
	}
	return o
}

// remove takes an object away.
func (s *store) remove(k key) bool {
	o := s.objects[k]
	if o == nil {
		return false
	}
	delete(s.objects, k)
	s.version++
	s.note(change{s.version, k, o.data, nil})
	return true
}

func (s *store) note(c change) {
	if len(s.history) == historyLimit {
		s.oldest = s.history[0].version
		s.history = s.history[1:]
	}
	s.history = append(s.history, c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// since are the changes after a version; false when some of them may be forgotten.
func (s *store) since(version uint64) ([]change, bool) {
	if version < s.oldest {
		return nil, false
	}
	from, _ := slices.BinarySearchFunc(s.history, version+1, func(c change, v uint64) int { return int(c.version) - int(v) })
	return slices.Clone(s.history[from:]), true
}

// uid is an identifier that a second object of the name does not have.
func (s *store) uid(k key) string {
	sum := sha256.Sum256(fmt.Append(nil, k, s.version))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

// put makes or exchanges an object of any resource.
func (s *store) put(data map[string]any) error {
	b, err := json.Marshal(data) // whatever numbers it has, they become those of JSON
	if err == nil {
		data = nil
		err = json.Unmarshal(b, &data)
	}
	if err != nil {
		return fmt.Errorf("put a %s: %w", text(data, "kind"), err)
	}
	group, version, ok := strings.Cut(text(data, "apiVersion"), "/")
	if !ok {
		group, version = "", group
	}
	for _, r := range s.resources {
		if r.group != group || r.version != version || r.kind != text(data, "kind") {
			continue
		}
		meta := metaOf(data)
		k := key{group, r.plural, "", text(meta, "name")}
		if r.namespaced {
			if text(meta, "namespace") == "" {
				meta["namespace"] = "default"
			}
			k.namespace = text(meta, "namespace")
			s.needNamespace(k.namespace)
		}
		if k.name == "" {
			return fmt.Errorf("put a %s: it has no metadata.name", r.kind)
		}
		if old := s.objects[k]; old != nil {
			keepMeta(metaOf(old.data), meta)
		}
		s.set(k, data)
		return nil
	}
	return fmt.Errorf("put a %s of %q: no such resource is served; put its CustomResourceDefinition first", text(data, "kind"), text(data, "apiVersion"))
}

// keepMeta gives an object's metadata what no writer may change.
func keepMeta(old, meta map[string]any) {
	for _, name := range [...]string{"name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		if v, ok := old[name]; ok {
			meta[name] = v
		} else {
			delete(meta, name)
		}
	}
	delete(meta, "managedFields")
}

// take brings in what the Cluster says now.
func (s *store) take(now Objects) {
	there := make(map[key]bool, len(now.Nodes)+len(now.Pods))
	for _, n := range now.Nodes {
		k := key{plural: "nodes", name: n.Name}
		there[k] = true
		s.takeOne(k, n)
	}
	for _, p := range now.Pods {
		k := key{plural: "pods", namespace: p.Namespace, name: p.Name}
		there[k] = true
		s.needNamespace(p.Namespace)
		s.takeOne(k, p)
	}
	for _, c := range now.Custom {
		kind := c.GroupVersionKind()
		for _, r := range s.resources {
			if r.group == kind.Group && r.version == kind.Version && r.kind == kind.Kind {
				k := key{group: r.group, plural: r.plural, namespace: c.GetNamespace(), name: c.GetName()}
				there[k] = true
				s.takeOne(k, c)
			}
		}
	}
	var gone []key
	for k, o := range s.objects {
		if o.source != nil && !there[k] {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, func(a, b key) int {
		return strings.Compare(a.plural+a.namespace+"\x00"+a.name, b.plural+b.namespace+"\x00"+b.name)
	})
	for _, k := range gone {
		s.remove(k)
	}
}

// takeOne brings in one object. What the Cluster has changed since it was last asked goes into the object as clients left it; another
// UID is another object.
func (s *store) takeOne(k key, source any) {
	o := s.objects[k]
	if o != nil && o.source != nil && reflect.DeepEqual(o.source, source) {
		return
	}
	base, err := runtime.DefaultUnstructuredConverter.ToUnstructured(source)
	if err != nil {
		panic("an object of k8s.io/api has no JSON: " + err.Error()) // it is made of plain fields
	}
	switch source.(type) {
	case *corev1.Node:
		base["kind"], base["apiVersion"] = "Node", "v1"
	case *corev1.Pod:
		base["kind"], base["apiVersion"] = "Pod", "v1"
	}
	meta := metaOf(base)
	delete(meta, "resourceVersion")
	if meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	if o != nil && (o.source == nil || text(metaOf(o.base), "uid") != text(meta, "uid")) {
		s.remove(k)
		o = nil
	}
	data := runtime.DeepCopyJSON(base)
	if o != nil {
		data = carry(o.base, base, runtime.DeepCopyJSON(o.data), "").(map[string]any)
	}
	o = s.set(k, data)
	o.source, o.base = source, base
}

// carry brings the changes between two states, from and to, into a third. path is where they are: lists whose elements have a name are taken
// element by element.
func carry(from, to, into any, path string) any {
	if reflect.DeepEqual(from, to) {
		return into
	}
	f, ok1 := from.(map[string]any)
	t, ok2 := to.(map[string]any)
	i, ok3 := into.(map[string]any)
	if ok1 && ok2 && ok3 {
		for name := range f {
			if _, ok := t[name]; !ok {
				delete(i, name)
			}
		}
		for name, v := range t {
			i[name] = carry(f[name], v, i[name], path+"."+name)
		}
		return i
	}
	fl, ok1 := from.([]any)
	tl, ok2 := to.([]any)
	il, ok3 := into.([]any)
	if name := mergeKeys[path]; name != "" && ok1 && ok2 && ok3 {
		return carryList(fl, tl, il, name, path)
	}
	return runtime.DeepCopyJSONValue(to)
}

func carryList(from, to, into []any, name, path string) []any {
	out := make([]any, 0, len(into))
	for _, v := range into {
		id := nameOf(v, name)
		f, was := named(from, name, id)
		t, is := named(to, name, id)
		switch {
		case is:
			out = append(out, carry(f, t, v, path+"[]"))
		case !was:
			out = append(out, v) // a client's
		}
	}
	for _, t := range to {
		id := nameOf(t, name)
		_, was := named(from, name, id)
		if _, there := named(into, name, id); !there && !was {
			out = append(out, runtime.DeepCopyJSONValue(t))
		}
	}
	return out
}

// nameOf is an element's name in its list.
func nameOf(element any, name string) any {
	m, _ := element.(map[string]any)
	return m[name]
}

// named finds an element by its name.
func named(list []any, name string, id any) (any, bool) {
	at := slices.IndexFunc(list, func(v any) bool { return id != nil && reflect.DeepEqual(nameOf(v, name), id) })
	if at < 0 {
		return nil, false
	}
	return list[at], true
}

// metaOf is an object's metadata, which it gets if it has none.
func metaOf(data map[string]any) map[string]any {
	m, ok := data["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		data["metadata"] = m
	}
	return m
}

// shallow is a copy with metadata of its own.
func shallow(data map[string]any) map[string]any {
	out := maps.Clone(data)
	out["metadata"] = maps.Clone(metaOf(data))
	return out
}

func format(version uint64) string { return strconv.FormatUint(version, 10) }

// conflict is what a stale version is told.
func conflict(r *resource, name string) *apierrors.StatusError {
	return apierrors.NewConflict(r.groupResource(), name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}
