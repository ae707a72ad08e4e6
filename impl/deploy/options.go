package deploy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/enilab/enilab/impl/settings"
)

// Repository is the image's name; package image makes it.
const Repository = "docker.io/enilab/cni"

// DefaultTag is the tag of an image for which no other was asked.
const DefaultTag = "dev"

// Options are what differs between clusters. The zero value is EKS's.
type Options struct {
	Image      string            // empty: Repository:DefaultTag
	PullPolicy string            // Always, IfNotPresent or Never; empty: IfNotPresent
	Env        map[string]string // of both containers, an empty value is an unset variable
	Command    []string          // the daemon's; empty: /ipamd. The init container and the probes are always /ipamd's
	RuntimeDir string            // the host's folder of the runtime's socket, mounted at the same path; empty: /run/containerd
	// ExtraVolumes are paths of the host, mounted at the same path for the daemon to read and write.
	ExtraVolumes []string
	Namespace    string // empty: kube-system
}

// policies of pulling.
var policies = []string{"Always", "IfNotPresent", "Never"}

// filled are the options with their defaults, or why they cannot be.
func (o Options) filled() (Options, error) {
	fill := func(to *string, standard string) {
		if *to == "" {
			*to = standard
		}
	}
	fill(&o.Image, Repository+":"+DefaultTag)
	fill(&o.PullPolicy, "IfNotPresent")
	fill(&o.RuntimeDir, "/run/containerd")
	fill(&o.Namespace, "kube-system")
	if len(o.Command) == 0 {
		o.Command = []string{"/ipamd"}
	}
	return o, o.check()
}

func (o *Options) check() error {
	if strings.ContainsAny(o.Image, " \t\r\n") {
		return fmt.Errorf("deploy: the image is %q: expected a reference such as %s:%s", o.Image, Repository, DefaultTag)
	}
	if !slices.Contains(policies, o.PullPolicy) {
		return fmt.Errorf("deploy: the pull policy is %q: expected one of %s", o.PullPolicy, strings.Join(policies, ", "))
	}
	if slices.Contains(o.Command, "") {
		return fmt.Errorf("deploy: the command %q has an empty word", o.Command)
	}
	for name := range o.Env {
		if !plain(name) {
			return fmt.Errorf("deploy: %q is no name of an environment variable", name)
		}
	}
	if !absolute(o.RuntimeDir) {
		return fmt.Errorf("deploy: the runtime's folder is %q: expected an absolute path in its shortest form", o.RuntimeDir)
	}
	for _, v := range o.ExtraVolumes {
		if !absolute(v) {
			return fmt.Errorf("deploy: a volume is %q: expected an absolute path in its shortest form", v)
		}
	}
	return nil
}

// plain says whether a container may have a variable of that name.
func plain(name string) bool {
	ok := name != ""
	for _, r := range name {
		ok = ok && r > ' ' && r < 0x7f && r != '='
	}
	return ok
}

// absolute says whether a folder can be mounted: / itself cannot.
func absolute(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }

// Settings are what the daemon of these manifests will read of its environment, and what it will say about that. What only a pod knows
// is the name of its field, such as spec.nodeName.
func Settings(o Options) (*settings.Settings, []settings.Problem, error) {
	o, err := o.filled()
	if err != nil {
		return nil, nil, err
	}
	s, problems := o.settings()
	return s, problems, nil
}

func (o *Options) settings() (*settings.Settings, []settings.Problem) {
	env := map[string]string{}
	var environ []string
	for _, v := range o.environment() {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			env[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
		environ = append(environ, v.Name+"="+v.Value)
	}
	s, problems := settings.Read(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	return s, append(problems, settings.Unknown(environ)...)
}
