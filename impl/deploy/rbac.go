package deploy

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// name is the DaemonSet's and its ServiceAccount's, as on EKS.
const name = "aws-node"

// roleName is of the role and its binding, and not EKS's: rules are one value, so ours in EKS's role would take the others from the daemon that
// still runs and from the policy agent that goes on running.
const roleName = "enilab-aws-node"

// selector is EKS's; a DaemonSet's can never change, so another one could not be applied over it.
func selector() map[string]string { return map[string]string{"k8s-app": name} }

func labels() map[string]string {
	return map[string]string{"k8s-app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/instance": "aws-vpc-cni"}
}

// shared are the annotations of an object that amazon-vpc-cni-k8s may have made before. Who made it with kubectl apply left there what it
// applied, and by that kubectl apply --server-side takes over all its fields as if they had been ours, and then removes what we do not say:
// the policy agent, the operator's settings. What it finds there of our own tells it that there is nothing to take over.
func shared() map[string]string { return map[string]string{corev1.LastAppliedConfigAnnotation: "{}"} }

func (o *Options) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: labels(), Annotations: shared()},
	}
}

// role is exactly what package kube asks: the node's own object and its ENIConfig, that object as a watch too, which pods are bound to it,
// Events about it, and whether there are network policies. RBAC has no words for "its own", so it is every node's.
func role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: roleName, Labels: labels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
			{APIGroups: []string{"crd.k8s.amazonaws.com"}, Resources: []string{"eniconfigs"}, Verbs: []string{"get"}},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"list"}},
		},
	}
}

func (o *Options) binding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: roleName, Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: o.Namespace}},
	}
}
