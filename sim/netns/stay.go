package netns

import "time"

// Stay keeps the laboratory up until it is asked to end. Time does not jump any more, so that people can look around.
func (w *World) Stay(interrupted func() bool) {
	w.clock.still = true
	for !interrupted() && w.broken == nil && !w.unwanted() {
		w.until(w.now()+100*time.Millisecond, nil)
	}
	w.clock.still = w.parts.RealTime
}
