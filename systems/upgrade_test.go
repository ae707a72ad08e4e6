package systems

import (
	"slices"
	"testing"
)

func TestSteps(t *testing.T) {
	s := func(name, version string, daemon bool, steps, rollback []Step) *System {
		out := &System{Name: name, Version: version, Upgrade: Upgrade{Steps: steps, Rollback: rollback}}
		if daemon {
			out.Daemon = &Daemon{}
		}
		return out
	}
	up, back := []Step{StepStop, StepPlugins, StepStart}, []Step{StepPlugins, StepStop, StepStart}
	one, two := s("a", "1.9.0", true, up, back), s("a", "1.10.0", true, up, back)
	plain := s("b", "1.0.0", false, []Step{StepPlugins}, nil)
	for _, c := range []struct {
		name     string
		to, from *System
		want     []Step
	}{
		{"first start", one, nil, []Step{StepPlugins, StepStart}},
		{"upgrade", two, one, up},
		{"rollback", one, two, back},
		{"the same version again", one, one, up},
		{"a build of the same version", s("a", "1.9.0-eksbuild.1", true, up, back), one, up},
		{"an older build of it", s("a", "1.9.0-eksbuild.1", true, up, back), s("a", "1.9.0-eksbuild.2", true, up, back), back},
		{"from another system", one, s("c", "9.0.0", true, up, nil), up},
		{"from a commit", one, s("a", "80de801", true, up, nil), up},
		{"from a plugin alone", one, plain, []Step{StepPlugins, StepStart}},
		{"to a plugin alone", plain, one, []Step{StepStop, StepPlugins}},
	} {
		if got := c.to.Steps(c.from); !slices.Equal(got, c.want) {
			t.Errorf("%s: expected %v, found %v", c.name, c.want, got)
		}
	}
	if !slices.Equal(one.Upgrade.Steps, up) || !slices.Equal(one.Upgrade.Rollback, back) {
		t.Errorf("the description changed: %+v", one.Upgrade)
	}
}
