package timeline

import "time"

// Telling is a world's timeline as runs and readers ask for it: a world embeds one.
type Telling struct {
	Lines Timeline
	// Guard is held while Lines is read, by worlds in which others write meanwhile; nil: one goroutine has the world.
	Guard interface {
		Lock()
		Unlock()
	}
}

func (t *Telling) hold() (release func()) {
	if t.Guard == nil {
		return func() {}
	}
	t.Guard.Lock()
	return t.Guard.Unlock
}

// Story is what happened since t=0, for people and golden files.
func (t *Telling) Story() string { defer t.hold()(); return t.Lines.String() }

// Timeline is all of the story.
func (t *Telling) Timeline() string { defer t.hold()(); return t.Lines.Whole() }

// TimelineUntil is the story up to an instant of the scenario.
func (t *Telling) TimelineUntil(at time.Duration) string { defer t.hold()(); return t.Lines.Until(at) }

// Events are all of the story, as data, and Told how many there are.
func (t *Telling) Events() []Event { defer t.hold()(); return t.Lines.Events() }
func (t *Telling) Told() int       { defer t.hold()(); return t.Lines.Told() }

// Named is a text with the timeline's names of ENIs.
func (t *Telling) Named(text string) string { defer t.hold()(); return t.Lines.Named(text) }
