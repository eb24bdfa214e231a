package status

import "time"

// rateSpan is the time over which rows a second are counted: long enough that a resource polled every second does not flicker.
const rateSpan = 10 * time.Second

// rate is rows a second over the last rateSpan.
type rate struct {
	points []point
	owned  bool
}

type point struct {
	at   time.Time
	rows int64
}

// add notes that rows were published in all. The count of a resource that another instance published meanwhile, or whose topic began
// again, does not go on from the last one: counting starts anew.
func (r *rate) add(at time.Time, rows int64, owned bool) {
	if n := len(r.points); owned != r.owned || (n > 0 && rows < r.points[n-1].rows) {
		r.points = r.points[:0]
	}
	r.owned = owned
	for len(r.points) > 1 && at.Sub(r.points[0].at) > rateSpan {
		r.points = r.points[1:]
	}
	r.points = append(r.points, point{at, rows})
}

func (r *rate) perSecond() float64 {
	if len(r.points) < 2 || !r.owned {
		return 0
	}
	first, last := r.points[0], r.points[len(r.points)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(last.rows-first.rows) / seconds
}
