package scn

import (
	"strconv"
	"strings"
	"time"
)

const durationHint = "such as 30s, 20m or 1h30m"

// parseDuration reads a Go duration or whole days ("2d"); bad says what is wrong with it.
func parseDuration(s string) (d time.Duration, bad string) {
	if days, ok := strings.CutSuffix(s, "d"); ok && isDigits(days) {
		n, err := strconv.Atoi(days)
		if err != nil || n > int(maxDuration/(24*time.Hour)) {
			return 0, "is longer than " + formatDuration(maxDuration)
		}
		return time.Duration(n) * 24 * time.Hour, ""
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, "is not a duration"
	case d < 0:
		return 0, "is negative"
	case d > maxDuration:
		return 0, "is longer than " + formatDuration(maxDuration)
	}
	return d, ""
}

// formatDuration prints 20m and not 20m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// FormatDuration prints a duration as the language writes it: 20m and not 20m0s.
func FormatDuration(d time.Duration) string { return formatDuration(d) }
