package systems

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Manifest is what a DaemonSet says of the daemon's container. Values have our placeholders where it refers to fields of its pod.
type Manifest struct {
	File  string // below System.Folder
	From  string // version of the system that it came with
	Image string // of the container
	// Command and Args are the container's; the description's argv takes their place.
	Command, Args []string
	Environment   map[string]string
	Mounts        []Mount
	// Capabilities are those that the container has; nil: all, it is privileged.
	Capabilities []string
	Grace        time.Duration // terminationGracePeriodSeconds
	// Init are its init containers.
	Init []Container
	// Notes are what it says that nothing here stands for, a sentence each.
	Notes []string
}

// Container is an init container.
type Container struct {
	Name, Image   string
	Command, Args []string
	Environment   map[string]string
}

// maxManifest bounds a manifest, in bytes: upstream's are 20 KB, most of it CustomResourceDefinitions.
const maxManifest = 4 << 20

// The parts of Kubernetes' API that a DaemonSet's container is made of: others' keys are passed over, as an API server's older client does.
type (
	object struct {
		Kind     string `yaml:"kind"`
		Metadata struct {
			Name string `yaml:"name"`
		} `yaml:"metadata"`
		Items []yaml.Node `yaml:"items"`
		Spec  struct {
			Template struct {
				Spec podSpec `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	podSpec struct {
		Grace      *int64      `yaml:"terminationGracePeriodSeconds"`
		Init       []container `yaml:"initContainers"`
		Containers []container `yaml:"containers"`
		Volumes    []struct {
			Name     string `yaml:"name"`
			HostPath *struct {
				Path string `yaml:"path"`
			} `yaml:"hostPath"`
		} `yaml:"volumes"`
	}
	container struct {
		Name     string    `yaml:"name"`
		Image    string    `yaml:"image"`
		Command  []string  `yaml:"command"`
		Args     []string  `yaml:"args"`
		Env      []env     `yaml:"env"`
		EnvFrom  yaml.Node `yaml:"envFrom"`
		Security struct {
			Privileged   bool `yaml:"privileged"`
			Capabilities struct {
				Add  []string `yaml:"add"`
				Drop []string `yaml:"drop"`
			} `yaml:"capabilities"`
		} `yaml:"securityContext"`
		Mounts []struct {
			Name string `yaml:"name"`
			Path string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	env struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
		From  *struct {
			Field *struct {
				Path string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
)

// parseManifest takes a container out of the DaemonSet of a Kubernetes manifest.
func parseManifest(file string, data []byte, name string) (*Manifest, error) {
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s: it has %d bytes, and a manifest at most %d", file, len(data), maxManifest)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var sets []object
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		found, err := daemonSets(&n)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s", file, n.Line, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		sets = append(sets, found...)
	}
	var others []string
	for _, o := range sets {
		spec := &o.Spec.Template.Spec
		for i := range spec.Containers {
			c := &spec.Containers[i]
			if c.Name == name {
				return manifestOf(file, spec, c), nil
			}
			others = append(others, o.Metadata.Name+"/"+c.Name)
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s: expected a DaemonSet with the container %s, found no DaemonSet", file, name)
	}
	return nil, fmt.Errorf("%s: expected a DaemonSet with the container %s, found %s", file, name, strings.Join(others, ", "))
}

// daemonSets are those of a document, or of a List in it.
func daemonSets(n *yaml.Node) ([]object, error) {
	var head struct {
		Kind  string      `yaml:"kind"`
		Items []yaml.Node `yaml:"items"`
	}
	if err := n.Decode(&head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case "DaemonSet":
		var o object
		err := n.Decode(&o)
		return []object{o}, err
	case "List":
		var out []object
		for i := range head.Items {
			var o object
			if err := head.Items[i].Decode(&o); err != nil {
				return nil, err
			}
			if o.Kind == "DaemonSet" {
				out = append(out, o)
			}
		}
		return out, nil
	}
	return nil, nil
}

// ordinary are the capabilities that container runtimes give without being asked.
var ordinary = []string{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID",
	"SETPCAP", "SETUID", "SYS_CHROOT"}

func manifestOf(file string, spec *podSpec, c *container) *Manifest {
	m := &Manifest{File: file, Image: c.Image, Command: c.Command, Args: c.Args, Grace: longStop}
	if spec.Grace != nil && *spec.Grace >= 0 && *spec.Grace <= int64(time.Hour/time.Second) {
		m.Grace = time.Duration(*spec.Grace) * time.Second
	}
	m.Environment = m.environment(c)
	for _, v := range c.Mounts {
		for _, from := range spec.Volumes {
			if from.Name == v.Name && from.HostPath != nil && from.HostPath.Path != v.Path {
				m.Mounts = append(m.Mounts, Mount{Container: v.Path, Node: from.HostPath.Path})
			}
		}
	}
	if !c.Security.Privileged {
		m.Capabilities = capabilities(c.Security.Capabilities.Add, c.Security.Capabilities.Drop)
	}
	for i := range spec.Init {
		n := &spec.Init[i]
		m.Init = append(m.Init, Container{n.Name, n.Image, n.Command, n.Args, m.environment(n)})
	}
	return m
}

// capabilities are what a runtime makes of the lists; nil is all of them.
func capabilities(add, drop []string) []string {
	if slices.Contains(add, "ALL") {
		return nil
	}
	out := []string{}
	if !slices.Contains(drop, "ALL") {
		for _, c := range ordinary {
			if !slices.Contains(drop, c) {
				out = append(out, "CAP_"+c)
			}
		}
	}
	for _, c := range add {
		if c = "CAP_" + strings.TrimPrefix(c, "CAP_"); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

// fieldRefs are what a pod's fields are in the laboratory.
var fieldRefs = map[string]string{
	"spec.nodeName": "${NODE}", "metadata.name": "${POD}", "metadata.namespace": "${NAMESPACE}", "status.hostIP": "${ADDRESS}",
	"status.podIP": "${ADDRESS}", // with hostNetwork
}

// environment is a container's: later names win, and $(NAME) is an earlier one's value, as kubelet has it.
func (m *Manifest) environment(c *container) map[string]string {
	out := map[string]string{}
	for _, e := range c.Env {
		switch {
		case e.Name == "" || strings.ContainsAny(e.Name+e.Value, "\x00") || strings.Contains(e.Name, "="):
			m.note("the manifest's container %s has a variable %q, which cannot be set", c.Name, short(e.Name))
		case e.From == nil:
			out[e.Name] = substituted(strings.ReplaceAll(e.Value, "${", "$${"), out)
		case e.From.Field != nil && fieldRefs[e.From.Field.Path] != "":
			out[e.Name] = fieldRefs[e.From.Field.Path]
		case e.From.Field != nil:
			m.note("the manifest's %s is the pod's %s, which the laboratory does not have: it is not set", e.Name, e.From.Field.Path)
		default:
			m.note("the manifest's %s comes from a resource, a ConfigMap or a Secret: it is not set", e.Name)
		}
	}
	if !c.EnvFrom.IsZero() {
		m.note("the manifest's container %s has envFrom: nothing of it is set", c.Name)
	}
	return out
}

func (m *Manifest) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// substituted replaces $(NAME) by the value of a variable that is set already; $$(NAME) stays.
func substituted(s string, known map[string]string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "$(")
		if !ok {
			b.WriteString(s)
			return b.String()
		}
		name, after, closed := strings.Cut(rest, ")")
		v, is := known[name]
		switch {
		case strings.HasSuffix(before, "$"):
			b.WriteString(strings.TrimSuffix(before, "$") + "$(")
			s = rest
			continue
		case !closed || !is:
			b.WriteString(before + "$(")
			s = rest
			continue
		}
		b.WriteString(before + v)
		s = after
	}
}
