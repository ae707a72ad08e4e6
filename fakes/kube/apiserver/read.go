package apiserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/enilab/enilab/fakes/kube/server"
)

func (s *Server) read(w http.ResponseWriter, q *request) error {
	if q.name != "" {
		return s.get(w, q)
	}
	chosen, err := q.choice()
	if err != nil {
		return err
	}
	watch, err := q.flag("watch")
	if err != nil {
		return err
	}
	if watch {
		return s.watch(w, q, chosen)
	}
	return s.list(w, q, chosen)
}

func (s *Server) get(w http.ResponseWriter, q *request) error {
	s.mu.Lock()
	o := s.store.objects[q.key()]
	s.mu.Unlock()
	if o == nil {
		return apierrors.NewNotFound(q.groupResource(), q.name)
	}
	server.Send(w, http.StatusOK, q.shown(o.data))
	return nil
}

// shown is an object in the version that was asked for.
func (r *resource) shown(data map[string]any) map[string]any {
	if text(data, "apiVersion") == r.groupVersion() && text(data, "kind") == r.kind {
		return data
	}
	out := shallow(data)
	out["apiVersion"], out["kind"] = r.groupVersion(), r.kind
	return out
}

// choice is which objects of a resource a list or a watch is of.
type choice struct {
	group, plural, namespace string
	labels                   labels.Selector
	fields                   fields.Selector
}

func (q *request) choice() (*choice, error) {
	out := &choice{group: q.group, plural: q.plural, namespace: q.namespace}
	var err error
	if out.labels, err = labels.Parse(q.query.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest("unable to parse the label selector: " + err.Error())
	}
	if out.fields, err = fields.ParseSelector(q.query.Get("fieldSelector")); err != nil {
		return nil, apierrors.NewBadRequest("unable to parse the field selector: " + err.Error())
	}
	for _, demand := range out.fields.Requirements() {
		if !q.selectable(demand.Field) {
			return nil, apierrors.NewBadRequest("field label not supported: " + demand.Field)
		}
	}
	return out, nil
}

// has says whether an object is chosen.
func (c *choice) has(k key, data map[string]any) bool {
	if data == nil || k.group != c.group || k.plural != c.plural || c.namespace != "" && k.namespace != c.namespace {
		return false
	}
	if !c.labels.Empty() {
		set := labels.Set{}
		marks, _ := metaOf(data)["labels"].(map[string]any)
		for name := range marks {
			set[name] = text(marks, name)
		}
		if !c.labels.Matches(set) {
			return false
		}
	}
	for _, demand := range c.fields.Requirements() {
		if (field(data, demand.Field) == demand.Value) == (demand.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// field is what an object has at a path such as spec.nodeName, as field selectors compare it.
func field(data map[string]any, path string) string {
	var at any = data
	for name := range strings.SplitSeq(path, ".") {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	switch v := at.(type) {
	case string:
		return v
	case nil:
		if path == "spec.unschedulable" || path == "spec.hostNetwork" {
			return "false"
		}
		return ""
	}
	return fmt.Sprint(at)
}

// snapshotLimit is how many lists that were cut are remembered.
const snapshotLimit = 16

// snapshots are the lists that clients may continue, the oldest overwritten first.
type snapshots struct {
	count uint64
	kept  [snapshotLimit]snapshot
}

// snapshot is a list as it was.
type snapshot struct {
	number  uint64 // from 1; 0: it is not kept
	path    string
	version uint64
	items   []map[string]any
}

func (s *snapshots) keep(v snapshot) snapshot {
	s.count++
	v.number = s.count
	s.kept[s.count%snapshotLimit] = v
	return v
}

func (s *Server) list(w http.ResponseWriter, q *request, chosen *choice) error {
	limit, err := q.number("limit")
	if err != nil {
		return err
	}
	s.mu.Lock()
	v, from, err := s.store.shot(q, chosen)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	to := len(v.items)
	meta := map[string]any{"resourceVersion": format(v.version)}
	if limit > 0 && uint64(to-from) > limit {
		to = from + int(limit)
		if v.number == 0 {
			v = s.store.shots.keep(v)
		}
		meta["continue"] = base64.RawURLEncoding.EncodeToString([]byte(format(v.number) + "/" + strconv.Itoa(to)))
		meta["remainingItemCount"] = len(v.items) - to
	}
	s.mu.Unlock()
	items := make([]map[string]any, 0, to-from)
	for _, data := range v.items[from:to] {
		items = append(items, q.listed(data))
	}
	server.Send(w, http.StatusOK, map[string]any{"kind": q.kind + "List", "apiVersion": q.groupVersion(), "metadata": meta, "items": items})
	return nil
}

// listed is an object as a list shows it: a list of built-in kinds says once what they are.
func (r *resource) listed(data map[string]any) map[string]any {
	if r.custom {
		return r.shown(data)
	}
	out := shallow(data)
	delete(out, "kind")
	delete(out, "apiVersion")
	return out
}

// shot is the list to answer from: a fresh one, or the one that a token continues.
func (s *store) shot(q *request, chosen *choice) (v snapshot, from int, err error) {
	token := q.query.Get("continue")
	if token == "" {
		if err := s.reached(q); err != nil {
			return v, 0, err
		}
		v = snapshot{path: q.http.URL.Path, version: s.version}
		for _, o := range s.list(q.group, q.plural) {
			if chosen.has(o.key, o.data) {
				v.items = append(v.items, o.data)
			}
		}
		return v, 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	first, second, _ := strings.Cut(string(raw), "/")
	number, err1 := strconv.ParseUint(first, 10, 62)
	from, err2 := strconv.Atoi(second)
	if err != nil || err1 != nil || err2 != nil || from < 0 {
		return v, 0, apierrors.NewBadRequest("continue key is not valid: " + token)
	}
	v = s.shots.kept[number%snapshotLimit]
	switch {
	case number == 0 || v.number != number:
		return v, 0, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You must start a new list without the continue parameter.")
	case v.path != q.http.URL.Path || from > len(v.items):
		return v, 0, apierrors.NewBadRequest("continue key is not valid for this list: " + token)
	}
	return v, from, nil
}

// reached says whether a list of the version that is asked for can be given: only the latest is kept.
func (s *store) reached(q *request) error {
	version, err := q.number("resourceVersion")
	if err != nil {
		return err
	}
	match := q.query.Get("resourceVersionMatch")
	switch {
	case q.query.Get("sendInitialEvents") != "":
		return q.invalid("sendInitialEvents is forbidden for list")
	case match != "" && q.query.Get("resourceVersion") == "":
		return q.invalid("resourceVersionMatch is forbidden unless resourceVersion is provided")
	case match != "" && match != "Exact" && match != "NotOlderThan":
		return q.invalid(`resourceVersionMatch: supported values: "Exact", "NotOlderThan", "", found ` + match)
	case match == "Exact" && version == 0:
		return q.invalid(`resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`)
	case version > s.version:
		return tooLarge(version, s.version)
	case match == "Exact" && version < s.version:
		return apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d (%d)", version, s.version))
	}
	return nil
}

// invalid is the answer to options that do not go together.
func (q *request) invalid(message string) error {
	return failure(http.StatusUnprocessableEntity, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: "+message)
}

// tooLarge is the answer to a version that this server has not reached.
func tooLarge(version, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = tooLargeCauses
	return err
}
