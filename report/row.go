package report

import "strconv"

// Percent is the band of a figure.
func (f Figure) Percent() string { return strconv.FormatFloat(100*f.Band, 'f', -1, 64) }

// Class and Icon are how a check looks.
func (c Check) Class() string {
	switch c.Verdict {
	case "held":
		return "good"
	case "skipped":
		return "none"
	}
	return "bad"
}

// Icon is the sign of a check's verdict.
func (c Check) Icon() string { return icons[c.Class()] }
