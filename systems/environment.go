package systems

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Environment is the daemon's on a node: its manifest's container's, or the description's defaults where there is no manifest, then the
// description's, then those of the scenario's settings that it knows.
func (s *System) Environment(words Words, settings map[string]string) (map[string]string, error) {
	if s.Daemon == nil {
		return map[string]string{}, nil
	}
	base := s.Daemon.Defaults
	if s.Manifest != nil {
		base = s.Manifest.Environment
	}
	env, err := words.over(fmt.Sprintf("%s %s: environment", s.Name, s.Version), base, s.Daemon.Environment)
	if err != nil {
		return nil, err
	}
	for k, v := range settings {
		if s.Knows(k) {
			env[k] = v
		}
	}
	return env, nil
}

// over expands layers of variables, the later ones over the earlier. ${env.NAME} is of the layers before.
func (w Words) over(what string, layers ...map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, layer := range layers {
		before := maps.Clone(out)
		for _, k := range slices.Sorted(maps.Keys(layer)) {
			v, err := w.Expand(layer[k], before)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", what, k, err)
			}
			out[k] = v
		}
	}
	return out, nil
}

// InitEnvironment is that of an init step: its container's in the manifest, or the daemon's where it names none, then its own.
func (s *System) InitEnvironment(c Command, words Words, daemon map[string]string) (map[string]string, error) {
	out, base := maps.Clone(daemon), map[string]string(nil)
	if c.Container != "" {
		out = map[string]string{}
		if s.Manifest != nil {
			for _, in := range s.Manifest.Init {
				if in.Name == c.Container {
					base = in.Environment
				}
			}
		}
	}
	env, err := words.over(fmt.Sprintf("%s %s: environment of %s", s.Name, s.Version, c.Argv[0]), base, c.Environment)
	if err != nil {
		return nil, err
	}
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, env)
	return out, nil
}

// Argv is a command line of the description on a node.
func (s *System) Argv(argv []string, words Words, env map[string]string) ([]string, error) {
	out := make([]string, len(argv))
	for i, a := range argv {
		v, err := words.Expand(a, env)
		if err != nil {
			return nil, fmt.Errorf("%s %s: argv: %w", s.Name, s.Version, err)
		}
		out[i] = v
	}
	return out, nil
}

// Configuration is the conflist on a node whose daemon has that environment; nil where the system writes it itself.
func (s *System) Configuration(words Words, env map[string]string) ([]byte, error) {
	if s.Conflist.Name == "" {
		return nil, nil
	}
	text, err := s.conflistText()
	if err != nil {
		return nil, err
	}
	fill := func(v string) (string, error) { return words.Expand(v, env) }
	filled, err := s.fill(text, fill)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %s: %w", s.Name, s.Version, s.Conflist.Name, err)
	}
	return s.pruned(filled)
}

// Outline is the conflist before a node fills it in: each placeholder is left as ${NAME}.
func (s *System) Outline() ([]byte, error) {
	// While it is parsed, a number stands for each: it may be within a string, and in the place of a value.
	words, names := Words{}, []string{}
	for i, p := range Placeholders {
		words[p.Name] = fmt.Sprintf("8400000000000000%02d", i)
		names = append(names, words[p.Name], "${"+p.Name+"}")
	}
	env, err := s.Environment(words, nil)
	if err != nil {
		return nil, err
	}
	data, err := s.Configuration(words, env)
	if err != nil {
		return nil, err
	}
	return []byte(strings.NewReplacer(names...).Replace(string(data))), nil
}

// Template is the conflist as an entrypoint finds it: with its own words in it, without the plugins that are not there.
func (s *System) Template() ([]byte, error) {
	text, err := s.conflistText()
	if err != nil {
		return nil, err
	}
	return s.pruned(text)
}

// pruned is a conflist without the plugins that are not there.
func (s *System) pruned(text string) ([]byte, error) {
	list, err := s.parseList(text)
	if err != nil {
		return nil, err
	}
	kept, dropped := s.keep(list.plugins)
	if len(dropped) == 0 {
		return []byte(text), nil
	}
	return list.with(kept)
}

func (s *System) conflistText() (string, error) {
	if s.Conflist.From == "" {
		return s.Conflist.Words, nil
	}
	file := filepath.Join(s.Folder, filepath.FromSlash(s.Conflist.From))
	data, err := readBounded(file, maxConflist)
	if err != nil {
		return "", fmt.Errorf("%s %s: conflist: %w", s.Name, s.Version, err)
	}
	return string(data), nil
}

// cniVersion is where a conflist says its specification; placeholders keep it from being JSON.
var cniVersion = regexp.MustCompile(`"cniVersion"\s*:\s*"([^"]*)"`)

// Specification is the CNI version that the conflist names, such as 0.4.0; "" is unknown.
func (s *System) Specification() string {
	text, err := s.conflistText()
	if err != nil {
		return ""
	}
	if m := cniVersion.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// maxConflist bounds a conflist, in bytes.
const maxConflist = 256 << 10

// fill replaces the conflist's words and placeholders. Of a file that upstream wrote, only Replace is meant: it may have a ${ of its own.
func (s *System) fill(text string, expand func(string) (string, error)) (string, error) {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(s.Conflist.Replace)) {
		v, err := expand(s.Conflist.Replace[k])
		if err != nil {
			return "", err
		}
		quoted, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		pairs = append(pairs, k, string(quoted[1:len(quoted)-1])) // it stands in a string of JSON
	}
	if s.Conflist.From == "" {
		var err error
		if text, err = expand(text); err != nil {
			return "", err
		}
	}
	return strings.NewReplacer(pairs...).Replace(text), nil
}

// list is a conflist, its plugins apart.
type list struct {
	keys    map[string]json.RawMessage
	plugins []pluginConf
}

type pluginConf struct {
	Type, IPAM string
	raw        json.RawMessage
}

func (s *System) parseList(text string) (*list, error) {
	bad := func(what string) error {
		return fmt.Errorf("%s %s: %s: expected a CNI network configuration list, %s: %s", s.Name, s.Version, s.Conflist.Name, what, short(text))
	}
	l := &list{}
	if err := json.Unmarshal([]byte(text), &l.keys); err != nil {
		return nil, bad(err.Error())
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(l.keys["plugins"], &raws); err != nil || len(raws) == 0 {
		return nil, bad("its plugins are no list, or an empty one")
	}
	for _, raw := range raws {
		var p struct {
			Type string `json:"type"`
			IPAM struct {
				Type string `json:"type"`
			} `json:"ipam"`
		}
		if err := json.Unmarshal(raw, &p); err != nil || p.Type == "" || p.Type != filepath.Base(p.Type) {
			return nil, bad("one of its plugins has no type, or no proper one")
		}
		l.plugins = append(l.plugins, pluginConf{p.Type, p.IPAM.Type, raw})
	}
	return l, nil
}

// with is the list with these plugins alone.
func (l *list) with(plugins []pluginConf) ([]byte, error) {
	raws := make([]json.RawMessage, len(plugins))
	for i, p := range plugins {
		raws[i] = p.raw
	}
	raw, err := json.Marshal(raws)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(l.keys)
	out["plugins"] = raw
	return json.MarshalIndent(out, "", "  ")
}

// keep leaves those plugins out that are optional and not there.
func (s *System) keep(plugins []pluginConf) (kept []pluginConf, dropped []string) {
	for i, p := range plugins {
		if i > 0 && slices.Contains(s.Conflist.Optional, p.Type) && !s.hasPlugin(p.Type) {
			dropped = append(dropped, p.Type)
			continue
		}
		kept = append(kept, p)
	}
	return kept, dropped
}

// hasPlugin says whether a node will have a binary of that name: a file for /opt/cni/bin, or one that the daemon copies there itself.
func (s *System) hasPlugin(name string) bool {
	return slices.ContainsFunc(s.Files, func(f File) bool { return f.To == PluginFolder+"/"+name || f.From == name })
}

// WithManifest is the system with the manifest of another one: its environment, mounts and capabilities, as when an image is changed and
// nothing else (`kubectl set image`). of without a manifest: the description's defaults.
func (s *System) WithManifest(of *System) *System {
	out := s.clone()
	out.Manifest = of.Manifest
	if of.Manifest != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the environment is that of version %s's manifest", of.Version))
	}
	return &out
}

// Capabilities are the only ones that the daemon gets; nil: all.
func (s *System) Capabilities() []string {
	switch {
	case s.Daemon == nil:
		return nil
	case s.Daemon.Capabilities != nil || s.Manifest == nil:
		return s.Daemon.Capabilities
	}
	return s.Manifest.Capabilities
}

// AllMounts are the manifest's, then those of the description.
func (s *System) AllMounts() []Mount {
	var out []Mount
	if s.Manifest != nil {
		out = slices.Clone(s.Manifest.Mounts)
	}
	for _, m := range s.Mounts {
		out = slices.DeleteFunc(out, func(o Mount) bool { return o.Container == m.Container })
		out = append(out, m)
	}
	return out
}

// readBounded reads a file that is no larger than that.
func readBounded(file string, most int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s: expected a file of at most %d bytes, found %s of %d", file, most, kindOf(info), info.Size())
	}
	return os.ReadFile(file)
}

func kindOf(info os.FileInfo) string {
	switch {
	case info.IsDir():
		return "a folder"
	case info.Mode().IsRegular():
		return "a file"
	}
	return "a device or socket"
}

// Knows says whether a setting, by its upstream name, means something to the daemon.
func (s *System) Knows(setting string) bool {
	return s.Daemon != nil && slices.Contains(s.Daemon.Settings, setting)
}
