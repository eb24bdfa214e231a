package rest

import "time"

const (
	// A day that cannot be closed costs hundreds of requests. It is tried again after firstPause, then after
	// twice as long each time, at most lastPause.
	firstPause = 30 * time.Second
	lastPause  = time.Hour
)

// days is the state of the past days from settled on.
type days struct {
	// closed are the days that were closed behind one that is not closed. This is good only while all their rows
	// are published.
	closed    map[day]bool
	notClosed map[day]*notClosedDay
}

// notClosedDay is a day that could not be closed.
type notClosedDay struct {
	why   string
	next  time.Time // when it is tried again
	pause time.Duration
}

func newDays() days { return days{closed: map[day]bool{}, notClosed: map[day]*notClosedDay{}} }

// close records that the days of s are closed. It returns the first day at or after settled that is not.
func (d *days) close(s span, settled day) day {
	for n := s.From; n <= s.To; n++ {
		d.closed[n] = true
		delete(d.notClosed, n)
	}
	for ; d.closed[settled]; settled++ {
		delete(d.closed, settled)
	}
	return settled
}

// leaveOpen records that the days of s could not be closed.
func (d *days) leaveOpen(s span, why string) {
	for n := s.From; n <= s.To; n++ {
		h := d.notClosed[n]
		if h == nil {
			h = &notClosedDay{pause: firstPause / 2}
			d.notClosed[n] = h
		}
		h.pause = min(h.pause*2, lastPause)
		h.why, h.next = why, time.Now().Add(h.pause)
	}
}

// waits reports whether n is not closed and it is too early to try again.
func (d *days) waits(n day) (why string, waits bool) {
	h := d.notClosed[n]
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
	if len(d.closed) == 0 && len(d.notClosed) == 0 {
		return last
	}
	for n < last && d.toRead(n+1) {
		n++
	}
	return n
}

// unsettled returns the worst state of the days of s: not closed, then unread, then closed.
func (d *days) unsettled(s span) (worst DayRange) {
	worst.State = Closed
	for n := s.From; n <= s.To; n++ {
		if h := d.notClosed[n]; h != nil {
			return DayRange{State: NotClosed, Why: h.why, Next: h.next}
		}
		if !d.closed[n] {
			worst.State = Unread
		}
	}
	return worst
}
