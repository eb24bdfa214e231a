package status

import "time"

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
	// while this instance did not poll the resource. All resources have equally many points.
	RowsPerSecond map[string][]*float64 `json:"rows_per_second"`
}

// history collects the points of History.
type history struct {
	at      time.Time
	points  map[string][]*float64
	length  int // of each
	version int
}

func newHistory() history { return history{points: map[string][]*float64{}} }

// add notes a point of one resource for the step that the next call of end closes.
func (h *history) add(resource string, value float64, known bool) {
	points, there := h.points[resource]
	if !there { // a resource that has just appeared was not polled before
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
		if len(points) < h.length { // the provider did not name it
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
	shown := History{End: h.at, StepSeconds: historyStep, RowsPerSecond: map[string][]*float64{}}
	for resource, points := range h.points {
		shown.RowsPerSecond[resource] = append([]*float64{}, points...)
	}
	return shown
}
