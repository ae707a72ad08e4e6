package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upstreamFiles are amazon-vpc-cni-k8s's objects, in the order in which they are applied.
var upstreamFiles = []string{
	"impl/deploy/eniconfigs.yaml", "e2e/testdata/beside-upstream.yaml", "impl/deploy/testdata/upstream.yaml",
}

// upstreamsOwn are objects of these resources.
const upstreamsOwn = `
apiVersion: crd.k8s.amazonaws.com/v1alpha1
kind: ENIConfig
metadata: {name: a}
spec: {subnet: subnet-0123456789abcdef0}
---
apiVersion: vpcresources.k8s.aws/v1alpha1
kind: CNINode
metadata: {name: a}
spec: {features: [{name: SecurityGroupsForPods}]}
---
apiVersion: networking.k8s.aws/v1alpha1
kind: PolicyEndpoint
metadata: {name: a, namespace: kube-system}
spec: {podIsolation: [Ingress]}
`

// kept are what stays of theirs, as kubectl says it: what to get, which part of it, and what that is.
var kept = []struct{ what, path, is string }{
	{"crd/eniconfigs.crd.k8s.amazonaws.com", "{.spec.scope}", "Cluster"},
	{"eniconfigs.crd.k8s.amazonaws.com/a", "{.spec.subnet}", "subnet-0123456789abcdef0"},
	{"crd/cninodes.vpcresources.k8s.aws", "{.spec.scope}", "Cluster"},
	{"cninodes.vpcresources.k8s.aws/a", "{.spec.features[*].name}", "SecurityGroupsForPods"},
	{"crd/policyendpoints.networking.k8s.aws", "{.spec.scope}", "Namespaced"},
	{"policyendpoints.networking.k8s.aws/a", "{.spec.podIsolation[*]}", "Ingress"},
	{"configmap/amazon-vpc-cni", `{.data.enable-windows-ipam}`, "true"},
	{"configmap/amazon-vpc-cni", `{.data.enable-network-policy-controller}`, "true"},
	{"configmap/amazon-vpc-cni", `{.data.branch-eni-cooldown}`, "90"},
	{"serviceaccount/aws-node", `{.metadata.annotations.eks\.amazonaws\.com/role-arn}`, "arn:aws:iam::111122223333:role/cni"},
	{"daemonset/aws-node", "{.metadata.labels.cost-centre}", "network"},
	{"daemonset/aws-node", `{.spec.template.metadata.annotations.example\.com/scrape}`, "61678"},
	{"daemonset/aws-node", `{.spec.template.spec.containers[*].name}`, "aws-node aws-eks-nodeagent"},
	{"daemonset/aws-node", `{.spec.template.spec.containers[?(@.name=="aws-eks-nodeagent")].image}`, idleImage},
	{"daemonset/aws-node", envPath("WARM_ENI_TARGET"), "3"},
	{"daemonset/aws-node", envPath("AWS_VPC_K8S_CNI_EXTERNALSNAT"), "true"},
}

// envPath is where kubectl finds a setting of the daemon's container, the first one.
func envPath(name string) string {
	return fmt.Sprintf(`{.spec.template.spec.containers[0].env[?(@.name==%q)].value}`, name)
}

// rights are what the ServiceAccount aws-node may: the agents beside the daemon need theirs after as before, and the
// daemon its own.
var rights = []authorizationv1.ResourceAttributes{
	{Group: "networking.k8s.aws", Resource: "policyendpoints", Verb: "watch"},
	{Group: "networking.k8s.aws", Resource: "policyendpoints", Subresource: "status", Verb: "get"},
	{Group: "vpcresources.k8s.aws", Resource: "cninodes", Verb: "patch"},
	{Group: "crd.k8s.amazonaws.com", Resource: "eniconfigs", Verb: "watch"},
	{Resource: "namespaces", Verb: "watch"},
	{Resource: "events", Verb: "patch"},
}

var ourRights = []authorizationv1.ResourceAttributes{
	{Resource: "nodes", Verb: "watch"},
	{Resource: "pods", Verb: "list"},
	{Resource: "events", Verb: "create"},
	{Group: "networking.k8s.io", Resource: "networkpolicies", Verb: "list"},
}

// The objects of amazon-vpc-cni-k8s were there first, by `kubectl apply`, and its daemon never ran. Ours are applied
// as docs/ipamd.md says.
var _ = specs("the objects of amazon-vpc-cni-k8s", Label("upstream", long), func(b *bed) {
	It("become ours by what docs/ipamd.md says, and others lose nothing of theirs", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			check(b.forget(ctx))
			check(b.install(ctx, nil))
		}, NodeTimeout(rollLimit+3*time.Minute))
		check(b.forget(ctx))
		theirs := got(upstreamObjects())
		for _, text := range append(theirs, upstreamsOwn) {
			// A resource is served a moment after its definition is there.
			await(ctx, time.Minute, "kubectl to apply theirs", func(ctx context.Context) (string, error) {
				_, err := b.kubectlApply(ctx, text)
				return "", err
			})
		}
		check(b.keeps(ctx, kept...))
		check(b.may(ctx, rights))
		Expect(b.may(ctx, ourRights)).NotTo(Succeed(), "a right that is ours")

		b.changed = true
		ours := got(b.Manifests(b.daemonOptions(nil)))
		as := []string{"--server-side", "--force-conflicts", "--field-manager=enilab"}
		var generations []string
		for _, more := range [][]string{{"--dry-run=server"}, nil, nil} {
			said := got(b.kubectlApply(ctx, string(ours), append(as, more...)...))
			say(strings.ReplaceAll(said, "\n", ", "))
			g, err := b.kubectl(ctx, "get", "-n", "kube-system", "daemonset/aws-node", "-o", "jsonpath={.metadata.generation}")
			check(err)
			generations = append(generations, g)
		}
		Expect(generations).To(Equal([]string{"1", "2", "2"}), "the DaemonSet changes when ours are applied, and once")
		check(b.rolledOut(ctx))
		check(b.keeps(ctx, kept...))
		check(b.may(ctx, rights))
		check(b.may(ctx, ourRights))

		namespace := b.newNamespace(ctx, "upstream")
		for i, n := range b.Workers() {
			b.start(ctx, namespace, "over", fmt.Sprintf("over-%d", i), onNode(n.Name))
		}
		pods := b.awaitReady(ctx, namespace, "over", len(b.Workers()))
		for i := range pods {
			Expect(b.misplaced(&pods[i])).To(Succeed())
		}
		check(b.reach(ctx, pods, pods))
	}, NodeTimeout(2*rollLimit+2*startLimit))
})

// rolledOut waits for the DaemonSet and its nodes.
func (b *bed) rolledOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rollLimit)
	defer cancel()
	if err := b.RolledOut(ctx); err != nil {
		return err
	}
	return b.Ready(ctx)
}

// upstreamObjects have images that no registry has, but for the agent, which does nothing: its container stays in our
// pods.
func upstreamObjects() (out []string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	for _, name := range upstreamFiles {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		// A smaller MTU than the nodes have would cut this suite's own connections to the API server, whose segments
		// are larger.
		raw = bytes.ReplaceAll(raw, []byte(`AWS_VPC_ENI_MTU, value: "1500"`), []byte(`AWS_VPC_ENI_MTU, value: "9001"`))
		raw = bytes.ReplaceAll(raw, []byte("registry.example/aws-network-policy-agent:v1.3.0"), []byte(idleImage))
		raw = bytes.ReplaceAll(raw, []byte("imagePullPolicy: Always"), []byte("imagePullPolicy: IfNotPresent"))
		out = append(out, string(raw))
	}
	return out, nil
}

// kubectl runs on the control plane.
func (b *bed) kubectl(ctx context.Context, args ...string) (string, error) {
	return b.Nodes()[0].Exec(ctx, append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
}

func (b *bed) kubectlApply(ctx context.Context, text string, args ...string) (string, error) {
	const file = "/kind/enilab-e2e-apply.yaml"
	if err := os.WriteFile(filepath.Join(b.Nodes()[0].Root(), file), []byte(text), 0o644); err != nil {
		return "", err
	}
	return b.kubectl(ctx, append([]string{"apply", "-f", file}, args...)...)
}

// forget removes the CNI's objects, ours and theirs, and ends its daemons. Pods go on.
func (b *bed) forget(ctx context.Context) error {
	_, err := b.kubectl(ctx, "delete", "--ignore-not-found", "--wait", "-n", "kube-system",
		"daemonset/aws-node", "serviceaccount/aws-node", "configmap/amazon-vpc-cni",
		"clusterrole/aws-node", "clusterrolebinding/aws-node",
		"clusterrole/enilab-aws-node", "clusterrolebinding/enilab-aws-node",
		"crd/eniconfigs.crd.k8s.amazonaws.com", "crd/cninodes.vpcresources.k8s.aws", "crd/policyendpoints.networking.k8s.aws")
	if err != nil {
		return err
	}
	return awaited(ctx, stopLimit, "the daemons to end", func(ctx context.Context) (string, error) {
		list, err := b.daemons(ctx)
		if err != nil || len(list) == 0 {
			return "", err
		}
		return describePods(list), nil
	})
}

// keeps says what is not as it was.
func (b *bed) keeps(ctx context.Context, list ...struct{ what, path, is string }) error {
	var errs []error
	for _, k := range list {
		is, err := b.kubectl(ctx, "get", "-n", "kube-system", k.what, "-o", "jsonpath="+k.path)
		if err == nil && is != k.is {
			err = fmt.Errorf("%s: expected that %s is %q, found %q", k.what, k.path, k.is, is)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// may says which rights the ServiceAccount aws-node does not have.
func (b *bed) may(ctx context.Context, list []authorizationv1.ResourceAttributes) error {
	var errs []error
	for i := range list {
		right := &list[i]
		r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:kube-system:aws-node", ResourceAttributes: right}}
		answer, err := b.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("aws-node may not %s %s %s of group %q", right.Verb, right.Resource, right.Subresource, right.Group)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
