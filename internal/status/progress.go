package status

import "time"

// Progress says how far a first load or a replay has come, by time. Reads go in the order of updated_at, and
// how many rows a day holds is not known beforehand. So Fraction is a part of the time span and not of the
// rows.
type Progress struct {
	From time.Time `json:"from,omitzero"` // where it began; absent if this instance does not know
	At   time.Time `json:"at,omitzero"`   // up to where it has come; its end is now
	// Fraction is (At - From) / (Now - From); absent without From. SecondsLeft is how long the rest takes at the
	// pace of the last half minute; absent without a pace. The Board sets both.
	Fraction    *float64 `json:"fraction,omitempty"`
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// estimate sets Fraction and SecondsLeft.
func (g *Progress) estimate(now time.Time, p *pace) {
	if whole := now.Sub(g.From); !g.From.IsZero() && !g.At.IsZero() && whole > 0 {
		fraction := min(max(0, float64(g.At.Sub(g.From))/float64(whole)), 1)
		g.Fraction = &fraction
	}
	if left, ok := p.left(now, g.At); ok {
		seconds := max(0, left.Seconds())
		g.SecondsLeft = &seconds
	}
}

// paceSpan is the time over which pace is measured: long enough for the chunks and days in which a load
// moves.
const paceSpan = 30 * time.Second

// pace is how fast a load moves through time.
type pace struct{ points []place }

type place struct {
	at       time.Time // by the clock on the wall
	position time.Time // in the data
}

// add notes the position of the load. If it has gone back, the load was restarted. The zero position is the
// start.
func (p *pace) add(at, position time.Time) {
	if position.IsZero() {
		return
	}
	if n := len(p.points); n > 0 && position.Before(p.points[n-1].position) {
		p.points = p.points[:0]
	}
	for len(p.points) > 1 && at.Sub(p.points[0].at) > paceSpan {
		p.points = p.points[1:]
	}
	p.points = append(p.points, place{at, position})
}

// left is how long it takes to come from position to now; false if it does not get nearer.
func (p *pace) left(now, position time.Time) (time.Duration, bool) {
	if len(p.points) < 2 {
		return 0, false
	}
	first, last := p.points[0], p.points[len(p.points)-1]
	took, moved := last.at.Sub(first.at).Seconds(), last.position.Sub(first.position).Seconds()
	if took < 2 || moved <= took {
		return 0, false
	}
	// The end moves too, by a second a second.
	return time.Duration(now.Sub(position).Seconds() / (moved/took - 1) * float64(time.Second)), true
}
