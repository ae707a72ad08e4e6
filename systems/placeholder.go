package systems

import (
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/internal/spelling"
)

// Placeholder is a word that stands for something of the node, written ${NAME}.
type Placeholder struct{ Name, Doc string }

// Placeholders are all that there are, beside ${env.VARIABLE:-otherwise}: a variable of the daemon's environment.
var Placeholders = []Placeholder{
	{"NODE", "the node's name"},
	{"ADDRESS", "its primary address"},
	{"POD", "the name of the daemon's pod"},
	{"NAMESPACE", "the namespace of the daemon's pod"},
	{"CLUSTER", "the cluster's name"},
	{"REGION", "the region"},
	{"EC2_URL", "the URL of EC2"},
	{"METADATA_URL", "the URL of instance metadata"},
	{"KUBERNETES_URL", "the URL of the API server"},
	{"KUBERNETES_HOST", "its address, as in-cluster clients take it"},
	{"KUBERNETES_PORT", "its port, as in-cluster clients take it"},
	{"KUBECONFIG", "a kubeconfig in the node"},
	{"RUNTIME_SOCKET", "the socket of the container runtime"},
	{"DOCKER_HOST", "Docker's API, as DOCKER_HOST takes it"},
	{"CA", "a file with the certificate of the run's own CA"},
	{"POD_RANGE", "the first prefix of the node's first ENI, such as 10.0.0.32/28"},
	{"POD_RANGES", "all of them, as host-local takes a set of ranges: [{\"subnet\": \"10.0.0.32/28\"}]"},
	{"VPC_CIDR", "the VPC's range"},
}

// mistake is a text that cannot be expanded.
type mistake struct{ text, hint string }

// check finds the first unknown placeholder, nil if there is none.
func check(s string) *mistake {
	_, m := expand(s, func(string) (string, *mistake) { return "", nil })
	return m
}

// expand replaces each placeholder of a text; $${ is a ${ that stays.
func expand(s string, value func(name string) (string, *mistake)) (string, *mistake) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		if !ok {
			b.WriteString(s)
			return b.String(), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			s = rest
			continue
		}
		b.WriteString(before)
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", &mistake{fmt.Sprintf("the placeholder ${%s has no end", short(rest)), "write ${NAME}, or $${ for the two characters"}
		}
		if m := known(name); m != nil {
			return "", m
		}
		v, m := value(name)
		if m != nil {
			return "", m
		}
		b.WriteString(v)
		s = after
	}
}

func short(s string) string { return s[:min(len(s), 40)] }

// known refuses a name that is no placeholder.
func known(name string) *mistake {
	if v, ok := strings.CutPrefix(name, "env."); ok {
		variable, _, _ := strings.Cut(v, ":-")
		if variable == "" || strings.ContainsAny(variable, " =:${") {
			return &mistake{fmt.Sprintf("${%s} names no variable", short(name)), "write ${env.VARIABLE} or ${env.VARIABLE:-otherwise}"}
		}
		return nil
	}
	names := make([]string, len(Placeholders))
	for i, p := range Placeholders {
		names[i] = p.Name
	}
	if slices.Contains(names, name) {
		return nil
	}
	hint := "there are " + strings.Join(names, ", ") + ", and env.VARIABLE"
	if s := spelling.Suggest(name, names); s != "" {
		hint = "did you mean ${" + s + "}?"
	}
	return &mistake{fmt.Sprintf("there is no placeholder ${%s}", short(name)), hint}
}

// Words are what placeholders stand for on a node: by their names, without ${}.
type Words map[string]string

// Expand fills in the placeholders of a text. env is what ${env.…} reads.
func (w Words) Expand(s string, env map[string]string) (string, error) {
	out, m := expand(s, func(name string) (string, *mistake) {
		if v, ok := strings.CutPrefix(name, "env."); ok {
			variable, otherwise, _ := strings.Cut(v, ":-")
			if env[variable] != "" {
				return env[variable], nil
			}
			return otherwise, nil
		}
		v, ok := w[name]
		if !ok {
			return "", &mistake{fmt.Sprintf("this world has nothing for ${%s}", name), ""}
		}
		return v, nil
	})
	if m != nil {
		return "", fmt.Errorf("%s", m.text)
	}
	return out, nil
}
