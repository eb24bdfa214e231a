package rest

import (
	"math"
	"strconv"
	"time"

	"github.com/storestream/storestream/schemas"
)

// day is a UTC day, counted from 1970-01-01: the grain of the service's filters.
type day int32

// A span that begins at past or ends at future has no bound there: the parameter is left out.
const (
	past   day = math.MinInt32
	future day = math.MaxInt32
)

const dayLength = schemas.Instant(24 * 60 * 60 * 1e6)

func dayOf(i schemas.Instant) day { return day(i.Day() / dayLength) }

func (d day) start() schemas.Instant { return schemas.Instant(d) * dayLength }

func (d day) String() string { return d.start().Time().Format(time.DateOnly) }

// span is a range of days, both ends included.
type span struct{ from, to day }

var always = span{past, future}

func (s span) single() bool { return s.from == s.to }

// length in days of a span bounded on both sides.
func (s span) length() int { return int(s.to-s.from) + 1 }

// clamp is the day of s next to d.
func (s span) clamp(d day) day { return min(max(d, s.from), s.to) }

func (s span) String() string {
	switch {
	case s == always:
		return "ever"
	case s.single():
		return "on " + s.from.String()
	case s.from == past:
		return "until " + s.to.String()
	case s.to == future:
		return "since " + s.from.String()
	}
	return "from " + s.from.String() + " to " + s.to.String()
}

// bare is the days without a preposition.
func (s span) bare() string {
	if s.single() {
		return s.from.String()
	}
	return s.from.String() + " to " + s.to.String()
}

// window is a set of rows that the service can be asked for: those updated in one span and created in another.
type window struct{ updated, created span }

func (w window) String() string {
	if w.updated == always {
		return "rows created " + w.created.String()
	}
	if w.created == always {
		return "rows updated " + w.updated.String()
	}
	return "rows updated " + w.updated.String() + " and created " + w.created.String()
}

// query is the request for one page of w. The service refuses a request without any date, so a window without bounds asks for
// everything until the last day that can be written.
func (w window) query(page, size int) string {
	b := make([]byte, 0, 160)
	add := func(name, value string) {
		if len(b) > 0 {
			b = append(b, '&')
		}
		b = append(append(append(b, name...), '='), value...)
	}
	bound := func(name string, d day) {
		if d != past && d != future {
			add(name, d.String())
		}
	}
	bound("created_from", w.created.from)
	bound("created_to", w.created.to)
	bound("updated_from", w.updated.from)
	bound("updated_to", w.updated.to)
	if len(b) == 0 {
		add("updated_to", dayOf(schemas.MaxInstant).String())
	}
	add("page", strconv.Itoa(page))
	add("page_size", strconv.Itoa(size))
	return string(b)
}
