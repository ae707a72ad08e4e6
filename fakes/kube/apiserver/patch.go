package apiserver

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

func uidOf(s string) types.UID { return types.UID(s) }

// mergeKeys are the lists of built-in kinds whose elements a strategic merge finds by name, with the field that is their name; "" is a list
// of texts that is a set. k8s.io/apimachinery has that from the structs' tags, and needs a hundred packages for it; these are the lists of
// what CNIs write, and a test compares.
var mergeKeys = func() map[string]string {
	m := map[string]string{".status.conditions": "type", ".status.addresses": "type", ".spec.taints": "key", ".metadata.ownerReferences": "uid",
		".metadata.finalizers": "", ".status.podIPs": "ip", ".status.hostIPs": "ip", ".spec.podCIDRs": "", ".spec.ports": "port", ".secrets": "name"}
	for _, pod := range [...]string{".spec", ".spec.template.spec"} {
		for _, kind := range [...]string{".containers", ".initContainers", ".ephemeralContainers"} {
			m[pod+kind] = "name"
			m[pod+kind+"[].env"] = "name"
			m[pod+kind+"[].ports"] = "containerPort"
			m[pod+kind+"[].volumeMounts"] = "mountPath"
			m[pod+kind+"[].volumeDevices"] = "devicePath"
		}
		m[pod+".volumes"], m[pod+".imagePullSecrets"], m[pod+".hostAliases"] = "name", "name", "ip"
		m[pod+".topologySpreadConstraints"], m[pod+".resourceClaims"], m[pod+".schedulingGates"] = "topologyKey", "name", "name"
	}
	return m
}()

const (
	jsonPatch      = string(types.JSONPatchType)
	mergePatch     = string(types.MergePatchType)
	strategicPatch = string(types.StrategicMergePatchType)
)

func (s *Server) patch(w http.ResponseWriter, q *request) error {
	if q.name == "" {
		return notAllowed(q.groupResource(), http.MethodPatch)
	}
	kinds := []string{jsonPatch, mergePatch, strategicPatch}
	if q.custom {
		kinds = kinds[:2]
	}
	b, kind, err := q.body(w, kinds...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.store.objects[q.key()]
	if old == nil {
		return apierrors.NewNotFound(q.groupResource(), q.name)
	}
	data, err := patched(old.data, b, kind)
	if err != nil {
		return err
	}
	meta, ok := data["metadata"].(map[string]any)
	if !ok {
		return apierrors.NewBadRequest("the patch takes the object's metadata away")
	}
	if name := text(meta, "name"); name != q.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, q.name))
	}
	data["apiVersion"], data["kind"] = q.groupVersion(), q.kind
	if err := q.check(data); err != nil {
		return err
	}
	return s.write(w, q, old, data)
}

// patched is an object with a patch applied.
func patched(old map[string]any, b []byte, kind string) (map[string]any, error) {
	var out map[string]any
	if kind == jsonPatch {
		p, err := jsonpatch.DecodePatch(b)
		if err != nil {
			return nil, apierrors.NewBadRequest("the patch is no JSON patch: " + err.Error())
		}
		raw, err := json.Marshal(old)
		if err == nil {
			raw, err = p.Apply(raw)
		}
		if err != nil {
			return nil, failure(http.StatusUnprocessableEntity, "Invalid", "the server rejected our request due to an error in our request: "+err.Error())
		}
		if err := json.Unmarshal(raw, &out); err != nil || out == nil {
			return nil, apierrors.NewBadRequest("the patch leaves no object")
		}
		return out, nil
	}
	var p map[string]any
	if err := json.Unmarshal(b, &p); err != nil || p == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patch is no JSON object: %v", err))
	}
	if kind == mergePatch {
		return merge(runtime.DeepCopyJSON(old), p), nil
	}
	return strategic(runtime.DeepCopyJSON(old), p, "")
}

// inner is the object that another has under a name; an empty one if it has none.
func inner(of map[string]any, name string) map[string]any {
	if o, _ := of[name].(map[string]any); o != nil {
		return o
	}
	return map[string]any{}
}

// merge is RFC 7396.
func merge(into, patch map[string]any) map[string]any {
	for name, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			into[name] = merge(inner(into, name), v)
		default:
			into[name] = v
		}
	}
	return into
}

// Directives of a strategic merge patch.
const (
	directive    = "$patch"
	retain       = "$retainKeys"
	elementOrder = "$setElementOrder/"
	takeAway     = "$deleteFromPrimitiveList/"
)

// strategic merges a patch into an object. An order of elements ($setElementOrder) is not enforced: none of these lists has a meaning by it.
func strategic(into, patch map[string]any, path string) (map[string]any, error) {
	switch patch[directive] {
	case nil, "merge":
	case "replace":
		delete(patch, directive)
		return patch, nil
	case "delete":
		return map[string]any{}, nil
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unknown patch type found: %v", patch[directive]))
	}
	if keep, ok := patch[retain].([]any); ok {
		for name := range into {
			if !contains(keep, name) {
				delete(into, name)
			}
		}
	}
	for name, v := range patch {
		if list, ok := strings.CutPrefix(name, takeAway); ok {
			old, _ := into[list].([]any)
			gone, _ := v.([]any)
			into[list] = without(old, gone)
		}
	}
	for name, v := range patch {
		if name == directive || name == retain || strings.HasPrefix(name, elementOrder) || strings.HasPrefix(name, takeAway) {
			continue
		}
		var err error
		switch v := v.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			into[name], err = strategic(inner(into, name), v, path+"."+name)
		case []any:
			old, _ := into[name].([]any)
			into[name], err = strategicList(old, v, path+"."+name)
		default:
			into[name] = v
		}
		if err != nil {
			return nil, err
		}
	}
	return into, nil
}

func strategicList(into, patch []any, path string) ([]any, error) {
	name, known := mergeKeys[path]
	if !known {
		return patch, nil
	}
	if name == "" {
		for _, v := range patch {
			if !contains(into, v) {
				into = append(into, v)
			}
		}
		return into, nil
	}
	kept := patch[:0:0]
	for _, v := range patch {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: expected objects, found %v", path, v))
		}
		if len(m) == 1 && m[directive] == "replace" {
			into = nil
			continue
		}
		kept = append(kept, v)
	}
	for _, v := range kept {
		m := v.(map[string]any)
		id := m[name]
		if id == nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: map: %v does not contain declared merge key: %s", path, m, name))
		}
		if m[directive] == "delete" {
			into = deleteNamed(into, name, id)
			continue
		}
		if err := mergeNamed(&into, m, name, path); err != nil {
			return nil, err
		}
	}
	return into, nil
}

func mergeNamed(into *[]any, m map[string]any, name, path string) error {
	for i, old := range *into {
		if o, ok := old.(map[string]any); ok && reflect.DeepEqual(o[name], m[name]) {
			merged, err := strategic(o, m, path+"[]")
			(*into)[i] = merged
			return err
		}
	}
	merged, err := strategic(map[string]any{}, m, path+"[]")
	*into = append(*into, merged)
	return err
}

func deleteNamed(list []any, name string, id any) []any {
	out := []any{}
	for _, v := range list {
		if !reflect.DeepEqual(nameOf(v, name), id) {
			out = append(out, v)
		}
	}
	return out
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(have any) bool { return reflect.DeepEqual(have, v) })
}

func without(list, gone []any) []any {
	out := []any{}
	for _, v := range list {
		if !contains(gone, v) {
			out = append(out, v)
		}
	}
	return out
}
