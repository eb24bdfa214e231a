package status

import "time"

// rateSpan is the time over which a rate is measured: long enough that a resource polled every second does
// not flicker.
const rateSpan = 10 * time.Second

// rate is how fast a count grew over the last rateSpan.
type rate struct{ points []point }

type point struct {
	at time.Time
	n  int64
}

func (r *rate) add(at time.Time, n int64) {
	// The oldest point that stays is the last one that lies rateSpan back.
	for len(r.points) > 1 && at.Sub(r.points[1].at) >= rateSpan {
		r.points = r.points[1:]
	}
	r.points = append(r.points, point{at, n})
}

func (r *rate) perSecond() float64 {
	if len(r.points) < 2 {
		return 0
	}
	first, last := r.points[0], r.points[len(r.points)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(last.n-first.n) / seconds
}
