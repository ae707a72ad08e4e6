package systems

import "slices"

// Steps is the order in which the system takes over from another one on a node; nil before it: a first installation,
// so that nothing is stopped. A version of the same name that was newer makes it a rollback. A daemon that runs is
// stopped, whatever the order leaves out.
func (s *System) Steps(before *System) []Step {
	steps := s.Upgrade.Steps
	if before != nil && s.Upgrade.Rollback != nil && before.Name == s.Name && isVersion(before.Version) && isVersion(s.Version) &&
		precedes(s.Version, before.Version) {
		steps = s.Upgrade.Rollback
	}
	steps = slices.Clone(steps)
	switch stops := slices.Contains(steps, StepStop); {
	case before == nil || before.Daemon == nil:
		steps = slices.DeleteFunc(steps, func(step Step) bool { return step == StepStop })
	case !stops:
		steps = slices.Insert(steps, 0, StepStop)
	}
	return steps
}

// Ways says whether there is a way from one system to the other: they are versions of one, or one's description says that it replaces the other.
func Ways(a, b *System) bool {
	return a.Name == b.Name || slices.Contains(a.Upgrade.Replaces, b.Name) || slices.Contains(b.Upgrade.Replaces, a.Name)
}
