package rest

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// memory is what the reads before this one came to.
type memory struct {
	from schemas.Instant
	// done are the days that were closed behind one that is held.
	done map[day]bool
	// open is where the open window began when it was last read whole; wholeAt when that read began, by our clock, and reach the updated_at that
	// a cheap poll must get back to. whole is false until there was one.
	whole   bool
	open    day
	wholeAt time.Time
	reach   schemas.Instant
	// took is how long that read was busy, requests how many it needed; paged: more than a page.
	took     time.Duration
	requests int
	paged    bool
	// deepAt is when passes over a piece of the open window that did not come clean are tried again.
	deepAt time.Time
	// tight is the open window that took several pages when it was read together with the day before.
	tight day
	// end is the last page of the open window where rows are sorted ascending.
	end int
}

func newMemory() memory { return memory{done: map[day]bool{}, from: schemas.MinInstant, tight: past} }

// seize begins a pass from settled. Settled going back is a replay: all from there on is to be read again.
func (m *memory) seize(from schemas.Instant) {
	if from < m.from {
		*m = newMemory()
	}
	m.from = from
}

// hardDay is a day that did not come clean.
type hardDay struct {
	why   string
	next  time.Time
	pause time.Duration
}

const (
	// A day that does not come clean costs hundreds of requests: it is tried again after firstHold, then after twice as long each time, at most lastHold.
	firstHold = 30 * time.Second
	lastHold  = time.Hour
)

// hold notes that d did not come clean.
func (s *Source) hold(d day, why string) {
	h := s.hard[d]
	if h == nil {
		h = &hardDay{pause: firstHold / 2}
		s.hard[d] = h
	}
	h.pause = min(h.pause*2, lastHold)
	h.why, h.next = why, time.Now().Add(h.pause)
}

// waiting tells whether d is held and it is too early to try again.
func (s *Source) waiting(d day) (why string, waiting bool) {
	h := s.hard[d]
	if h == nil || !time.Now().Before(h.next) {
		return "", false
	}
	return h.why, true
}
