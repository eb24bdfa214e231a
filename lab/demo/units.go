package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// count writes a number with its thousands apart: 1,234,567.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// pace writes rows a second: 0, 0.4, 12, 1,234.
func pace(perSecond float64) string {
	if perSecond > 0 && perSecond < 9.95 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return count(int64(perSecond + 0.5))
}

// duration writes a time as people say it, in its two largest units, as the status page does: 0.8 s, 42 s, 3 min 5 s, 2 h 10 min, 4 d 3 h.
func duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", max(0, d.Seconds()))
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
}

// instant writes a time in UTC to the second, "not yet" where it is not known.
func instant(t time.Time) string {
	if t.IsZero() {
		return "not yet"
	}
	return t.UTC().Format(time.DateTime)
}
