package rest

import "time"

const (
	// A day that cannot be closed costs hundreds of requests. It is tried again after firstHold, then after
	// twice as long each time, at most lastHold.
	firstHold = 30 * time.Second
	lastHold  = time.Hour
)

// days is the state of the past days from settled on.
type days struct {
	// closed are the days that were closed behind one that is held. This is good only while all their rows are
	// published.
	closed map[day]bool
	held   map[day]*heldDay
}

// heldDay is a day that could not be closed.
type heldDay struct {
	why   string
	next  time.Time // when it is tried again
	pause time.Duration
}

func newDays() days { return days{closed: map[day]bool{}, held: map[day]*heldDay{}} }

// close records that the days of s are closed. It returns the first day at or after settled that is not.
func (d *days) close(s span, settled day) day {
	for n := s.From; n <= s.To; n++ {
		d.closed[n] = true
		delete(d.held, n)
	}
	for ; d.closed[settled]; settled++ {
		delete(d.closed, settled)
	}
	return settled
}

// hold records that the days of s could not be closed.
func (d *days) hold(s span, why string) {
	for n := s.From; n <= s.To; n++ {
		h := d.held[n]
		if h == nil {
			h = &heldDay{pause: firstHold / 2}
			d.held[n] = h
		}
		h.pause = min(h.pause*2, lastHold)
		h.why, h.next = why, time.Now().Add(h.pause)
	}
}

// waits reports whether n is held and it is too early to try again.
func (d *days) waits(n day) (why string, waits bool) {
	h := d.held[n]
	if h == nil || !time.Now().Before(h.next) {
		return "", false
	}
	return h.why, true
}

// toRead reports whether n is to be read now.
func (d *days) toRead(n day) bool {
	_, waits := d.waits(n)
	return !waits && !d.closed[n]
}

// freeUntil returns the last day from n to last before the next one that is not to be read.
func (d *days) freeUntil(n, last day) day {
	if len(d.closed) == 0 && len(d.held) == 0 {
		return last
	}
	for n < last && d.toRead(n+1) {
		n++
	}
	return n
}

// unsettled returns the worst state of the days of s: held, then unread, then closed.
func (d *days) unsettled(s span) (worst DayRange) {
	worst.State = Closed
	for n := s.From; n <= s.To; n++ {
		if h := d.held[n]; h != nil {
			return DayRange{State: Held, Why: h.why, Next: h.next}
		}
		if !d.closed[n] {
			worst.State = Unread
		}
	}
	return worst
}
