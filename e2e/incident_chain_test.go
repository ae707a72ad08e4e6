package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/enilab/enilab/e2e/calls"
)

// Two plugins that do nothing until they are told to fail or stall, in the list before enilab's and behind all others. DEL runs a list backwards:
// where the first one fails, enilab's has already done its work and is called again; the last one keeps a DEL from it. ADD is the
// other way round.
const (
	firstPlugin = "enilab-first"
	lastPlugin  = "enilab-last"
)

const (
	pluginDir = "/opt/cni/bin"
	confFile  = "/etc/cni/net.d/10-aws.conflist"
)

// chain puts the two plugins into the node's list until the incident's end, as a mesh's or a policy engine's installer would.
func (s *scene) chain(ctx context.Context) error {
	binary, err := calls.Compile(ctx, calls.Shim)
	if err != nil {
		return err
	}
	for _, name := range []string{firstPlugin, lastPlugin} {
		if err := replace(filepath.Join(s.path(pluginDir), name), binary, 0o755); err != nil {
			return err
		}
	}
	conf := s.path(confFile)
	before, err := os.ReadFile(conf)
	if err != nil {
		return err
	}
	s.later(func() error {
		err := replace(conf, before, 0o644)
		for _, name := range []string{firstPlugin, lastPlugin, calls.FaultsFile} {
			if e := os.Remove(filepath.Join(s.path(pluginDir), name)); !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return err
	})
	var list map[string]any
	if err := json.Unmarshal(before, &list); err != nil {
		return err
	}
	plugins, _ := list["plugins"].([]any)
	list["plugins"] = append(append([]any{map[string]any{"type": firstPlugin}}, plugins...), map[string]any{"type": lastPlugin})
	after, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return replace(conf, after, 0o644)
}

// replace writes a file that somebody may be reading or running.
func replace(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", data, mode); err != nil {
		return err
	}
	if err := os.Chmod(path+".new", mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// faults are what goes wrong from now on; none ends what is stalled. Their pods are the incident's.
func (s *scene) faults(list ...calls.Fault) error {
	file := filepath.Join(s.path(pluginDir), calls.FaultsFile)
	if len(list) == 0 {
		if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	for i := range list {
		list[i].Pod = s.name + "/" + list[i].Pod
	}
	data, err := calls.EncodeFaults(list)
	if err != nil {
		return err
	}
	return replace(file, data, 0o600)
}

// happened waits until all faults have.
func (s *scene) happened(ctx context.Context) error {
	return awaited(ctx, stopLimit, "the runtime to call again and again", func(context.Context) (string, error) {
		data, err := os.ReadFile(filepath.Join(s.path(pluginDir), calls.FaultsFile))
		if err != nil {
			return "", err
		}
		if left := strings.TrimSpace(string(data)); left != "[]" && left != "null" {
			return "to come: " + left, nil
		}
		return "", nil
	})
}
