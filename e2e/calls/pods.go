package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
)

// Two kinds of process, by how they take SIGTERM.
const (
	obedient = `trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`
	stubborn = `trap '' TERM; while :; do sleep 1; done`
)

// grace is how long a stubborn pod lives on when it is deleted: longer than its successor needs to start.
const grace = 12

// object is one of the API's, or a part of one.
type object = map[string]any

// atOnce are the options of a deletion that waits for nobody.
var atOnce = object{"gracePeriodSeconds": 0}

// ask asks the API server and reads its answer; body and answer may be nil.
func (s *stage) ask(ctx context.Context, verb, uri string, body object, answer any) error {
	kind, raw := "application/json", []byte(nil)
	if verb == "PATCH" {
		kind = "application/merge-patch+json"
	}
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	raw, err := s.API(ctx, verb, uri, kind, raw)
	if err == nil && answer != nil {
		err = json.Unmarshal(raw, answer)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, uri, err)
	}
	return nil
}

// pods is where the life's pods are; a name behind it is one of them.
func (s *stage) pods() string { return "/api/v1/namespaces/" + s.space + "/pods" }

func (s *stage) spec(script, image string) object {
	return object{
		"nodeName": s.Node, "terminationGracePeriodSeconds": grace, "automountServiceAccountToken": false, "enableServiceLinks": false,
		"tolerations": []object{{"operator": "Exists"}},
		"containers":  []object{{"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": []string{"sh", "-c", script}}},
	}
}

// podObject is what is read of a pod.
type podObject struct {
	Metadata struct{ UID string }
	Status   struct {
		Conditions        []struct{ Type, Status string }
		ContainerStatuses []struct {
			State struct{ Waiting *struct{ Reason string } }
		}
	}
}

// create makes a pod.
func (s *stage) create(ctx context.Context, name, script, image string) (uid string, err error) {
	var made podObject
	err = s.ask(ctx, "POST", s.pods(), object{"metadata": object{"name": name}, "spec": s.spec(script, image)}, &made)
	return made.Metadata.UID, err
}

// start makes a pod and waits until it runs.
func (s *stage) start(ctx context.Context, name, script string) error {
	uid, err := s.create(ctx, name, script, s.image())
	if err != nil {
		return err
	}
	return s.running(ctx, name, uid)
}

// running waits until a pod is ready.
func (s *stage) running(ctx context.Context, name, uid string) error {
	return s.wait(ctx, removal, "pod "+name+" to be ready", func(ctx context.Context) (bool, error) {
		var p podObject
		err := s.ask(ctx, "GET", s.pods()+"/"+name, nil, &p)
		return err == nil && p.Metadata.UID == uid && p.ready(), err
	})
}

func (p *podObject) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// remove deletes a pod and waits until the API server has it no more.
func (s *stage) remove(ctx context.Context, name string) error {
	return errors.Join(s.delete(ctx, name, nil), s.podGone(ctx, name))
}

func (s *stage) delete(ctx context.Context, pod string, options object) error {
	return s.ask(ctx, "DELETE", s.pods()+"/"+pod, options, nil)
}

func (s *stage) podGone(ctx context.Context, name string) error {
	return s.gone(ctx, "pod", s.pods(), name)
}

// gone waits until the API server has an object of a collection no more.
func (s *stage) gone(ctx context.Context, noun, collection, name string) error {
	return s.wait(ctx, removal, noun+" "+name+" to go", func(ctx context.Context) (bool, error) {
		var list struct{ Items []json.RawMessage }
		err := s.ask(ctx, "GET", collection+"?fieldSelector="+url.QueryEscape("metadata.name="+name), nil, &list)
		return err == nil && len(list.Items) == 0, err
	})
}
