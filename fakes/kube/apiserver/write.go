package apiserver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/fakes/kube/server"
)

// bodyLimit is the largest body, as the real server's.
const bodyLimit = 3 << 20

// body reads what a client sends; kinds are the content types that it may have.
func (q *request) body(w http.ResponseWriter, kinds ...string) ([]byte, string, error) {
	kind := "application/json" // what a client means that says nothing
	if header := q.http.Header.Get("Content-Type"); header != "" {
		var err error
		if kind, _, err = mime.ParseMediaType(header); err != nil {
			kind = header
		}
	}
	known := false
	for _, k := range kinds {
		known = known || k == kind
	}
	if !known {
		return nil, kind, failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %v", kinds))
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, q.http.Body, bodyLimit))
	if err != nil {
		if _, ok := err.(*http.MaxBytesError); ok {
			return nil, kind, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", bodyLimit))
		}
		return nil, kind, errGone
	}
	return b, kind, nil
}

// object reads a body that is a whole object of the resource.
func (q *request) object(w http.ResponseWriter) (map[string]any, error) {
	kinds := []string{"application/json", "application/yaml", runtime.ContentTypeProtobuf}
	if q.proto == nil {
		kinds = kinds[:2]
	}
	b, kind, err := q.body(w, kinds...)
	if err != nil {
		return nil, err
	}
	if kind == runtime.ContentTypeProtobuf {
		data, err := q.fromProtobuf(b)
		if err != nil {
			return nil, apierrors.NewBadRequest("the body is no " + q.kind + " in protobuf: " + err.Error())
		}
		return data, q.check(data)
	}
	if kind == "application/yaml" {
		if b, err = yaml.YAMLToJSON(b); err != nil {
			return nil, apierrors.NewBadRequest("the body is no YAML: " + err.Error())
		}
	}
	var data map[string]any
	if err := json.Unmarshal(b, &data); err != nil || data == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v", q.kind, err))
	}
	return data, q.check(data)
}

// magic is what Kubernetes's protobuf begins with ("Kubernetes API Concepts", Protobuf encoding).
const magic = "k8s\x00"

// fromProtobuf reads what generated clients write built-in kinds in.
func (q *request) fromProtobuf(b []byte) (map[string]any, error) {
	rest, ok := strings.CutPrefix(string(b), magic)
	if !ok {
		return nil, errors.New("it does not begin with k8s")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal([]byte(rest)); err != nil {
		return nil, err
	}
	object := q.proto()
	if err := object.Unmarshal(envelope.Raw); err != nil {
		return nil, err
	}
	data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	data["apiVersion"], data["kind"] = envelope.APIVersion, envelope.Kind
	return data, nil
}

// check says whether an object may be at this path; an object that does not say what it is gets it from there.
func (q *request) check(data map[string]any) error {
	for name, want := range map[string]string{"kind": q.kind, "apiVersion": q.groupVersion()} {
		got, there := data[name]
		if there && got != "" && got != want {
			return apierrors.NewBadRequest(fmt.Sprintf("the %s in the data (%v) does not match the expected %s (%s)", name, got, name, want))
		}
		data[name] = want
	}
	if meta, there := data["metadata"]; there && meta != nil {
		if _, ok := meta.(map[string]any); !ok {
			return apierrors.NewBadRequest("metadata must be an object")
		}
	}
	meta := metaOf(data)
	for _, name := range [...]string{"labels", "annotations"} {
		marks, there := meta[name]
		m, ok := marks.(map[string]any)
		if !there || marks == nil {
			continue
		}
		for k, v := range m {
			if _, is := v.(string); !is {
				return apierrors.NewBadRequest(fmt.Sprintf("metadata.%s of %s: expected a string, found %v", name, k, v))
			}
		}
		if !ok {
			return apierrors.NewBadRequest("metadata." + name + " must be an object")
		}
	}
	if ns := text(meta, "namespace"); ns != "" && ns != q.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if q.namespaced {
		meta["namespace"] = q.namespace
	}
	if q.name != "" && text(meta, "name") == "" {
		meta["name"] = q.name
	}
	if name := text(meta, "name"); q.name != "" && name != q.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, q.name))
	}
	return nil
}

// dry says whether nothing may be kept.
func (q *request) dry() bool { return q.query.Get("dryRun") == "All" }

func (s *Server) create(w http.ResponseWriter, q *request) error {
	if q.name != "" || q.namespaced && q.namespace == "" {
		return notAllowed(q.groupResource(), http.MethodPost)
	}
	if q.cluster {
		return apierrors.NewForbidden(q.groupResource(), "", fmt.Errorf("%s are the laboratory's: clients make none", q.plural))
	}
	data, err := q.object(w)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	meta := metaOf(data)
	for _, name := range [...]string{"uid", "creationTimestamp", "resourceVersion", "managedFields", "deletionTimestamp"} {
		delete(meta, name)
	}
	if prefix := text(meta, "generateName"); text(meta, "name") == "" && prefix != "" {
		meta["name"] = prefix + suffix(s.store.version)
	}
	name := text(meta, "name")
	k := key{q.group, q.plural, q.namespace, name}
	switch {
	case name == "":
		return failure(http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("%s %q is invalid: metadata.name: Required value: name or generateName is required", q.groupKind(), ""))
	case q.namespaced && s.store.objects[key{plural: "namespaces", name: q.namespace}] == nil:
		return apierrors.NewNotFound(s.store.find("", "v1", "namespaces").groupResource(), q.namespace)
	case s.store.objects[k] != nil:
		return apierrors.NewAlreadyExists(q.groupResource(), name)
	}
	if q.status && q.custom {
		delete(data, "status")
	}
	if q.plural == crds && q.group == crdGroup {
		data["status"] = established(data)
	}
	if !q.dry() {
		data = s.store.set(k, data).data
	}
	server.Send(w, http.StatusCreated, q.shown(data))
	return nil
}

// established is the status of a CustomResourceDefinition that is served.
func established(crd map[string]any) map[string]any {
	spec, _ := crd["spec"].(map[string]any)
	condition := func(kind, reason string) any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": ""}
	}
	var stored []any
	for _, r := range served(crd) {
		stored = append(stored, r.version)
	}
	return map[string]any{"acceptedNames": spec["names"], "storedVersions": stored,
		"conditions": []any{condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")}}
}

// suffix is what generateName gets: no two have the same, for each object is a version of its own.
func suffix(version uint64) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // as the real server's: no words come out
	b := []byte("bbbbb")
	for i := len(b) - 1; i >= 0 && version > 0; i-- {
		b[i] = letters[version%uint64(len(letters))]
		version /= uint64(len(letters))
	}
	return string(b)
}

func (s *Server) update(w http.ResponseWriter, q *request) error {
	if q.name == "" {
		return notAllowed(q.groupResource(), http.MethodPut)
	}
	data, err := q.object(w)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.store.objects[q.key()]
	if old == nil {
		return apierrors.NewNotFound(q.groupResource(), q.name)
	}
	if q.custom && text(metaOf(data), "resourceVersion") == "" {
		return failure(http.StatusUnprocessableEntity, "Invalid",
			fmt.Sprintf("%s %q is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update", q.groupKind(), q.name))
	}
	return s.write(w, q, old, data)
}

// write exchanges an object by what a client made of it, as far as the path lets it.
func (s *Server) write(w http.ResponseWriter, q *request, old *object, data map[string]any) error {
	was, meta := metaOf(old.data), metaOf(data)
	if v := text(meta, "resourceVersion"); v != "" && v != "0" && v != format(old.version) {
		if _, err := strconv.ParseUint(v, 10, 64); err != nil {
			return apierrors.NewBadRequest("metadata.resourceVersion must be a number, found " + v)
		}
		return conflict(q.resource, q.name)
	}
	if uid := text(meta, "uid"); uid != "" && uid != text(was, "uid") {
		return apierrors.NewConflict(q.groupResource(), q.name, fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", uid, text(was, "uid")))
	}
	keepMeta(was, meta)
	out := data
	switch {
	case q.sub == "status":
		out = runtime.DeepCopyJSON(old.data)
		if out["status"] = data["status"]; data["status"] == nil {
			delete(out, "status")
		}
		if !q.custom { // of built-in kinds, the metadata that comes along is kept
			out["metadata"] = meta
		}
	case q.status:
		if out["status"] = runtime.DeepCopyJSONValue(old.data["status"]); old.data["status"] == nil {
			delete(out, "status")
		}
	}
	if q.dry() {
		server.Send(w, http.StatusOK, q.shown(out))
		return nil
	}
	server.Send(w, http.StatusOK, q.shown(s.store.set(q.key(), out).data))
	return nil
}

func (s *Server) delete(w http.ResponseWriter, q *request) error {
	if q.name == "" || q.sub != "" {
		return notAllowed(q.groupResource(), http.MethodDelete)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.store.objects[q.key()]
	switch {
	case old == nil:
		return apierrors.NewNotFound(q.groupResource(), q.name)
	case old.source != nil:
		return apierrors.NewForbidden(q.groupResource(), q.name, fmt.Errorf("%s are the laboratory's: clients delete none", q.plural))
	}
	uid := text(metaOf(old.data), "uid")
	if !q.dry() {
		s.store.remove(q.key())
	}
	server.Send(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: q.name, Group: q.group, Kind: q.plural, UID: uidOf(uid)}})
	return nil
}
