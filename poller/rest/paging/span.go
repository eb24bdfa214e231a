package paging

import (
	"math"
	"time"
)

// Day is a UTC day, counted from 1970-01-01: the grain in which the service filters.
type Day int32

// A span that begins at Past or ends at Future has no bound there.
const (
	Past   Day = math.MinInt32
	Future Day = math.MaxInt32
)

func (d Day) String() string {
	switch d {
	case Past:
		return "the first day"
	case Future:
		return "now"
	}
	return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly)
}

// Span is a range of days, both ends included.
type Span struct{ From, To Day }

// Always has no bounds.
var Always = Span{Past, Future}

// Single reports whether s is one day.
func (s Span) Single() bool { return s.From == s.To }

// Length in days of a span bounded on both sides.
func (s Span) Length() int { return int(s.To-s.From) + 1 }

func (s Span) String() string {
	if s.Single() {
		return s.From.String()
	}
	return s.From.String() + " to " + s.To.String()
}

// clamp is the day of s next to d.
func (s Span) clamp(d Day) Day { return min(max(d, s.From), s.To) }

// split cuts s after each of ends, which are in order. Ends outside s cut nothing.
func (s Span) split(ends []Day) []Span {
	var parts []Span
	for _, e := range ends {
		if e < s.From || e >= s.To || s.From == Past && e == Past {
			continue
		}
		parts = append(parts, Span{s.From, e})
		s.From = e + 1
	}
	return append(parts, s)
}
