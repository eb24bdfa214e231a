package paging

import (
	"maps"
	"slices"
)

// room is how much of a page a planned part fills: rows come between the plan and the reading.
func room(page int) int { return max(1, page*8/10) }

// divide cuts s, whose rows take several pages, into spans that fit one page each. known is how many rows
// were created on each day. If divide returns one span, s cannot be cut. A wrong number in known only costs
// requests: the spans always make up s without gap or overlap.
func divide(s Span, known map[Day]int, page int) []Span {
	counts := map[Day]int{}
	for d, n := range known {
		counts[s.clamp(d)] += n // a service that cuts days in another zone puts some rows a day off
	}
	days := slices.Sorted(maps.Keys(counts))
	if s.Single() || len(days) == 0 {
		return []Span{s}
	}
	var ends []Day // each cut is after such a day
	fill := 0
	for _, d := range days {
		n := counts[d]
		if fill > 0 && fill+n > room(page) {
			ends = append(ends, d-1)
			fill = 0
		}
		if fill += n; n > room(page) {
			// A day that is too much by itself stands alone: its neighbors would only be read again with it.
			if d != s.From && (len(ends) == 0 || ends[len(ends)-1] != d-1) {
				ends = append(ends, d-1)
			}
			ends = append(ends, d)
			fill = 0
		}
	}
	if parts := s.split(ends); len(parts) > 1 {
		return parts
	}
	// Rows have left: those in known would fit. The set did not, so it is cut in the middle of the known days.
	d := days[len(days)/2]
	if d > s.From {
		d--
	}
	return s.split([]Day{d})
}
