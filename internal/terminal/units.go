package terminal

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// Duration is d in its two largest units: 4d3h, 2h10m, 3m5s, 42s, 0.8s.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", max(0, d.Seconds()))
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// Count is n with its thousands apart: 1,234,567.
func Count[N int | int32 | int64](n N) string { return humanize.Comma(int64(n)) }

// Plural is n things: 1 row, 1,234 rows.
func Plural[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}
