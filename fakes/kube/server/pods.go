package server

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/kube"
)

// snapshotLimit is how many lists that were cut are remembered.
const snapshotLimit = 16

// snapshots are the lists that clients may continue, the oldest overwritten first.
type snapshots struct {
	count uint64
	kept  [snapshotLimit]snapshot
}

type snapshot struct {
	number  uint64 // from 1
	node    string
	version uint64
	pods    []kube.Pod
}

func (s *snapshots) keep(v snapshot) snapshot {
	s.count++
	v.number = s.count
	s.kept[s.count%snapshotLimit] = v
	return v
}

func (s *snapshots) find(number uint64) (snapshot, bool) {
	v := s.kept[number%snapshotLimit]
	return v, number > 0 && v.number == number
}

// pods lists the pods of one node.
func (a *api) pods(w http.ResponseWriter, r *http.Request, query url.Values) {
	name, s := selected(query, "spec.nodeName")
	if s == nil && name == "" {
		s = forbidden("pods")
	}
	watch, bad := flag(query, "watch")
	limit, badLimit := number(query, "limit")
	for _, next := range []*status{bad, badLimit} {
		if s == nil {
			s = next
		}
	}
	if s == nil && watch {
		s = failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "watches of pods are not modelled")
	}
	if s != nil {
		refuse(w, s)
		return
	}
	shot, from, s := a.shot(r, name, query.Get("continue"))
	if s != nil {
		refuse(w, s)
		return
	}
	a.sendPods(w, shot, from, limit)
}

// shot is the list to answer from: a fresh one, or the one that a token continues.
func (a *api) shot(r *http.Request, name, token string) (v snapshot, from int, s *status) {
	if token == "" {
		list, err := a.backend.Pods(r.Context(), name)
		if err != nil {
			drop()
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return snapshot{node: name, version: a.log.version, pods: list}, 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	first, second, _ := strings.Cut(string(raw), "/")
	number, err1 := strconv.ParseUint(first, 10, 62)
	from, err2 := strconv.Atoi(second)
	if err != nil || err1 != nil || err2 != nil || from < 0 {
		return v, 0, badRequest("continue key is not valid: " + token)
	}
	a.mu.Lock()
	v, ok := a.snapshots.find(number)
	a.mu.Unlock()
	switch {
	case !ok:
		return v, 0, expired("The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.")
	case v.node != name || from > len(v.pods):
		return v, 0, badRequest("continue key is not valid for this list: " + token)
	}
	return v, from, nil
}

func (a *api) sendPods(w http.ResponseWriter, v snapshot, from int, limit uint64) {
	to := len(v.pods)
	m := listMeta{ResourceVersion: format(v.version)}
	if limit > 0 && uint64(to-from) > limit {
		to = from + int(limit)
		if v.number == 0 {
			a.mu.Lock()
			v = a.snapshots.keep(v)
			a.mu.Unlock()
		}
		m.Continue = base64.RawURLEncoding.EncodeToString([]byte(format(v.number) + "/" + strconv.Itoa(to)))
		m.Remaining = len(v.pods) - to
	}
	out := list[pod]{Kind: "PodList", APIVersion: "v1", Metadata: m, Items: make([]pod, 0, to-from)}
	for i := from; i < to; i++ {
		out.Items = append(out.Items, a.podObject(v.node, &v.pods[i]))
	}
	Send(w, http.StatusOK, out)
}
