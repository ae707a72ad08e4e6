package conform

import (
	"encoding/json"
	"io"
	"time"
)

// Report is what a table's rows found.
type Report struct {
	Table       string // ec2 or imds
	Endpoint    string
	Began       time.Time
	Results     []Result
	Interrupted bool // the rows that are missing were not asked
}

// Count is how many rows ended in a way.
func (r *Report) Count(o Outcome) (n int) {
	for i := range r.Results {
		if r.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// Different are the results that differ, or that left something behind.
func (r *Report) Different() []Result {
	var out []Result
	for _, x := range r.Results {
		if x.Outcome == Differs || len(x.Left) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// Took is how long all rows took.
func (r *Report) Took() (d time.Duration) {
	for i := range r.Results {
		d += r.Results[i].Took
	}
	return d
}

type rowJSON struct {
	Name    string   `json:"name"`
	Call    string   `json:"call"`
	When    string   `json:"when"`
	Want    string   `json:"want"`
	Source  string   `json:"source"`
	Marks   []string `json:"marks,omitempty"`
	Outcome Outcome  `json:"outcome,omitempty"`
	Found   string   `json:"found,omitempty"`
	Left    []string `json:"left,omitempty"`
	Millis  int64    `json:"millis,omitempty"`
}

type reportJSON struct {
	Table       string    `json:"table"`
	Endpoint    string    `json:"endpoint"`
	Began       time.Time `json:"began"`
	Same        int       `json:"same"`
	Differ      int       `json:"differ"`
	Skipped     int       `json:"skipped"`
	Interrupted bool      `json:"interrupted,omitempty"`
	Rows        []rowJSON `json:"rows"`
}

// Write writes the report as JSON: docs/conform.md lists the columns.
func (r *Report) Write(w io.Writer) error {
	d := reportJSON{
		Table: r.Table, Endpoint: r.Endpoint, Began: r.Began.UTC(), Interrupted: r.Interrupted,
		Same: r.Count(Same), Differ: r.Count(Differs), Skipped: r.Count(Skipped), Rows: []rowJSON{},
	}
	for _, x := range r.Results {
		d.Rows = append(d.Rows, rowJSON{x.Row.Name, x.Row.Call, x.Row.When, x.Row.Want, x.Row.Source, x.Row.Marks.Names(), x.Outcome, x.Found,
			x.Left, x.Took.Milliseconds()})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}
