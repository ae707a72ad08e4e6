package kind

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// twice repeats once.
func twice(f func(context.Context) error) error {
	if f(context.Background()) == nil {
		return nil
	}
	return f(context.Background())
}

// TestController: workloads are made, scaled and rolled; of a Deployment's pods the newest are marked to go first, and the oldest are rolled.
func TestController(t *testing.T) {
	ctx := t.Context()
	p := &pods{byUID: map[string]*pod{}, changes: map[string]uint64{}}
	list := []runtime.Object{}
	for _, name := range []string{"web-c", "web-a", "web-b"} {
		k := object(name, name, "web", "a", nil)
		k.Namespace = namespaceOfPods
		p.put(k)
		list = append(list, k)
	}
	client := fake.NewClientset(list...)
	lost := errors.New("the answer is lost")
	client.PrependReactor("create", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) { // it is made, and nobody hears of it
		d := a.(clienttesting.CreateAction).GetObject()
		if err := client.Tracker().Create(a.GetResource(), d, namespaceOfPods); err != nil {
			return true, nil, err
		}
		return true, nil, lost
	})
	k := newController(client, p, twice)
	for _, err := range []error{k.create("web", 3, "deployment", []string{"a"}), k.create("web", 9, "deployment", nil), k.create("db", 2, statefulSet, []string{"a", "b"}),
		k.scale("nobody", 1), k.roll("nobody", 1), k.roll("web", 2), k.scale("web", 1), k.scale("db", 1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := client.AppsV1().Deployments(namespaceOfPods).Get(ctx, "web", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 1 || d.Spec.Template.Labels[workloadLabel] != "web" {
		t.Errorf("%v: %+v", err, d.Spec)
	}
	s, err := client.AppsV1().StatefulSets(namespaceOfPods).Get(ctx, "db", metav1.GetOptions{})
	if err != nil || *s.Spec.Replicas != 1 || s.Spec.PodManagementPolicy != "Parallel" {
		t.Errorf("%v: %+v", err, s.Spec)
	}
	if k.want["web"] != 1 || k.want["db"] != 1 || len(k.want) != 2 {
		t.Errorf("wanted: %v", k.want)
	}
	left, err := client.CoreV1().Pods(namespaceOfPods).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != "web-b" || left.Items[0].Annotations[deletionCost] != "-1" {
		t.Errorf("%v: left are %+v", err, left.Items)
	}
}

// TestDelete: another pod of the name is left alone, and one that is gone is fine.
func TestDelete(t *testing.T) {
	client := fake.NewClientset()
	k := newController(client, &pods{}, twice)
	if err := k.delete(pod{name: "gone", uid: "1"}, true); err != nil {
		t.Error(err)
	}
	client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "db-0", errors.New("the UID in the precondition does not match"))
	})
	if err := k.delete(pod{name: "db-0", uid: "1"}, false); err != nil {
		t.Error(err)
	}
}
