package status

import "time"

const (
	// historyStep is the seconds from one point of the history to the next, historyPoints how many there are: an hour.
	historyStep   = 10
	historyPoints = 360
)

// History is rows a second over the last hour, kept in memory: it begins anew with the process.
type History struct {
	End         time.Time `json:"end,omitzero"` // of the last point
	StepSeconds int       `json:"step_seconds"`
	// RowsPerSecond has points by resource, the newest last; each is the mean of the step that ends there, null where this instance did not poll
	// the resource. A resource has as many points as any other.
	RowsPerSecond map[string][]*float64 `json:"rows_per_second"`
}

type history struct {
	at      time.Time
	points  map[string][]*float64
	length  int // of each
	version int
}

func newHistory() history { return history{points: map[string][]*float64{}} }

// add notes a point that end makes part of the history.
func (h *history) add(resource string, value float64, known bool) {
	points, there := h.points[resource]
	if !there { // a resource that has just come up was not polled before
		points = make([]*float64, h.length, historyPoints+1)
	}
	if known {
		points = append(points, &value)
	} else {
		points = append(points, nil)
	}
	h.points[resource] = points
}

func (h *history) end(at time.Time) {
	h.at, h.version = at, h.version+1
	h.length++
	for resource, points := range h.points {
		if len(points) < h.length { // the provider no longer speaks of it
			points = append(points, nil)
		}
		if len(points) > historyPoints {
			points = append(points[:0], points[1:]...)
		}
		h.points[resource] = points
	}
	h.length = min(h.length, historyPoints)
}

// show is a copy.
func (h *history) show() History {
	shown := History{End: h.at, StepSeconds: historyStep, RowsPerSecond: make(map[string][]*float64, len(h.points))}
	for resource, points := range h.points {
		shown.RowsPerSecond[resource] = append([]*float64{}, points...)
	}
	return shown
}
