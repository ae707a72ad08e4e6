package virtual

// Condition is what a node's daemon is about.
type Condition string

// Conditions of a daemon: there is none; it has not served yet; EC2 has not said yet what its node has; it gives a reason for bad health; none of these.
const (
	Down       Condition = "down"
	Recovering Condition = "recovering"
	Surveying  Condition = "surveying"
	Impaired   Condition = "impaired"
	Serving    Condition = "serving"
)

// Conditions are all of them.
func Conditions() []Condition { return []Condition{Down, Recovering, Surveying, Impaired, Serving} }

// Condition is what the daemon of a node is about now.
func (w *World) Condition(no int) Condition {
	v, ok := w.nodes[no].View()
	switch {
	case !ok:
		return Down
	case !v.Serving:
		return Recovering
	case !v.Surveyed:
		return Surveying
	case len(v.Reasons) > 0:
		return Impaired
	}
	return Serving
}
