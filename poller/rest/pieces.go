package rest

import (
	"maps"
	"slices"
)

// piece is a span of created days and the rows that a window has in it.
type piece struct {
	span
	rows int
}

// room is how much of a page a planned piece fills: rows come between the plan and the reading.
func room(page int) int { return max(1, page*8/10) }

// divide cuts s, too big for one page, into spans that fit by what is known of its rows: how many were created on each day. One span
// back means that it cannot be cut. What is known decides only how many requests it takes: spans always make up s, without gap or overlap.
func divide(s span, known map[day]int, page int) []span {
	counts := map[day]int{}
	for d, n := range known {
		counts[s.clamp(d)] += n // a service that cuts days in another zone puts some rows a day off
	}
	days := slices.Sorted(maps.Keys(counts))
	if s.single() || len(days) == 0 {
		return []span{s}
	}
	var ends []day // each cut is after such a day
	fill := 0
	for _, d := range days {
		n := counts[d]
		if fill > 0 && fill+n > room(page) {
			ends = append(ends, d-1)
			fill = 0
		}
		if fill += n; n > room(page) { // a day that cannot be cut further stands alone: the days around it would only be read again with it
			if d != s.from && (len(ends) == 0 || ends[len(ends)-1] != d-1) {
				ends = append(ends, d-1)
			}
			ends = append(ends, d)
			fill = 0
		}
	}
	parts := split(s, ends)
	if len(parts) > 1 {
		return parts
	}
	// Rows left since: what is known would fit. The window did not, so it is cut in the middle of what is known.
	d := days[len(days)/2]
	if d > s.from {
		return split(s, []day{d - 1})
	}
	return split(s, []day{d})
}

// split cuts s after each of ends, in order; ends outside s cut nothing.
func split(s span, ends []day) []span {
	var parts []span
	for _, e := range ends {
		if e < s.from || e >= s.to || s.from == past && e == past {
			continue
		}
		parts = append(parts, span{s.from, e})
		s.from = e + 1
	}
	return append(parts, s)
}

// cuts is where windows had to be cut, in days relative to the window's own. The shop's days look alike: of today's rows so many were created
// today, so many yesterday. So what one day needed is where the next one begins, and a day that was read as today is closed without
// finding its pieces again.
type cuts []day

// apply cuts created for a window of the day anchor.
func (c cuts) apply(created span, anchor day) []span {
	if anchor == past || anchor == future {
		return []span{created}
	}
	ends := make([]day, len(c))
	for i, e := range c {
		ends[i] = anchor + e
	}
	return split(created, ends)
}

// learn keeps the cuts between pieces, leaving out those between neighbours that have room in one page together.
func (c *cuts) learn(pieces []piece, anchor day, page int) {
	if anchor == past || anchor == future {
		return
	}
	ends, fill := (*c)[:0:0], 0
	for i, p := range pieces {
		if i > 0 && fill+p.rows > room(page)*3/4 { // not as full as divide makes them, or they would be cut again at once
			ends = append(ends, pieces[i-1].to-anchor)
			fill = 0
		}
		fill += p.rows
	}
	*c = ends
}
