package status

import (
	"math"
	"time"
)

const (
	// historyStep is the seconds from one point to the next, historyPoints how many points there are: an hour.
	historyStep   = 10
	historyPoints = 360
)

// History is rows a second over the last hour. It is in memory, so it starts with the process.
type History struct {
	End         time.Time `json:"end,omitzero"` // of the last point
	StepSeconds int       `json:"step_seconds"`
	// RowsPerSecond has points by resource, the newest last. Each is the mean of the step that ends there, null
	// while this instance did not poll the resource.
	RowsPerSecond map[string][]*float64 `json:"rows_per_second"`
}

// add adds a point of one resource. It leaves the points that were shown before as they are.
func (h *History) add(resource string, value float64, known bool) {
	point := &value
	if !known {
		point = nil
	}
	before := h.RowsPerSecond[resource]
	points := append(make([]*float64, 0, historyPoints), before[max(0, len(before)+1-historyPoints):]...)
	h.RowsPerSecond[resource] = append(points, point)
}

// rateSpan is the time over which a rate is measured: long enough that a resource polled every second does
// not flicker.
const rateSpan = historyStep * time.Second

// series is a count over the last rateSpan.
type series []point

type point struct {
	at time.Time
	n  int64
}

func (s *series) add(at time.Time, n int64) {
	// The oldest point that stays is the last one that lies rateSpan back.
	for len(*s) > 1 && at.Sub((*s)[1].at) >= rateSpan {
		*s = (*s)[1:]
	}
	*s = append(*s, point{at, n})
}

// perSecond returns how fast the count grew, to a tenth.
func (s *series) perSecond() float64 {
	if s == nil || len(*s) < 2 {
		return 0
	}
	first, last := (*s)[0], (*s)[len(*s)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return math.Round(10*float64(last.n-first.n)/seconds) / 10
}
