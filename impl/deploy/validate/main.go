// Command validate says what an API server would answer to objects that are written over others. It asks that server's own code
// (k8s.io/kubernetes/pkg/apis: conversion, defaults, validation of what is new and of what has changed), which is a module of its own here, for
// it is large, pins fifty others, and is for one test alone.
//
// Standard input is JSON: [{"old": object or null, "new": object}, …]. Every refusal is a line of standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

func main() {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // EKS's, kind's and kubeadm's --allow-privileged
	var pairs []struct{ Old, New json.RawMessage }
	if err := json.NewDecoder(os.Stdin).Decode(&pairs); err != nil {
		fail(err)
	}
	for _, p := range pairs {
		refusals, err := judge(p.Old, p.New)
		if err != nil {
			fail(err)
		}
		for _, r := range refusals {
			fmt.Println(r)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "validate:", err)
	os.Exit(2)
}

func judge(was, now []byte) (field.ErrorList, error) {
	object, err := read(now)
	if err != nil {
		return nil, err
	}
	var old runtime.Object
	if len(was) > 0 && string(was) != "null" {
		if old, err = read(was); err != nil {
			return nil, err
		}
	}
	switch object := object.(type) {
	case *core.ServiceAccount:
		if old, ok := old.(*core.ServiceAccount); ok {
			return corevalidation.ValidateServiceAccountUpdate(object, old), nil
		}
		return corevalidation.ValidateServiceAccount(object), nil
	case *rbac.ClusterRole:
		var options rbacvalidation.ClusterRoleValidationOptions
		if old, ok := old.(*rbac.ClusterRole); ok {
			return rbacvalidation.ValidateClusterRoleUpdate(object, old, options), nil
		}
		return rbacvalidation.ValidateClusterRole(object, options), nil
	case *rbac.ClusterRoleBinding:
		if old, ok := old.(*rbac.ClusterRoleBinding); ok {
			return rbacvalidation.ValidateClusterRoleBindingUpdate(object, old), nil
		}
		return rbacvalidation.ValidateClusterRoleBinding(object), nil
	case *apps.DaemonSet:
		if old, ok := old.(*apps.DaemonSet); ok {
			object.Spec.TemplateGeneration = old.Spec.TemplateGeneration + 1 // the server counts it
			options := podapi.GetValidationOptionsFromPodTemplate(&object.Spec.Template, &old.Spec.Template)
			return append(appsvalidation.ValidateDaemonSet(object, options), appsvalidation.ValidateDaemonSetUpdate(object, old, options)...), nil
		}
		return appsvalidation.ValidateDaemonSet(object, podapi.GetValidationOptionsFromPodTemplate(&object.Spec.Template, nil)), nil
	}
	return nil, fmt.Errorf("a %T: expected one of the kinds that this program knows", object)
}

// read is an object as the server holds it: with defaults, and with what storage gives it.
func read(data []byte) (runtime.Object, error) {
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(object)
	object.(metav1.Object).SetResourceVersion("1")
	return legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
}
