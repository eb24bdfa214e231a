package postgres

import (
	"slices"
	"time"

	"github.com/storestream/storestream/schemas"
)

// mark is a moment of the server: every transaction with an id of next or more made its first write at time or later.
type mark struct {
	time schemas.Instant
	next uint64
	// since is when next was first seen: time moves on while nobody begins.
	since schemas.Instant
}

// maxMarks bounds the memory of marks. At one a second and one transaction open for hours they are thinned, oldest pairs first in
// effect: settling then stops a little short of what was possible, never beyond it.
const maxMarks = 1024

// settler says how far a range may settle: the rule of doc.go, and nothing else. It holds marks in the order in which they were
// noted, both time and next never falling. Its zero value with an overlap is ready.
type settler struct {
	overlap time.Duration
	marks   []mark
}

// note remembers a moment.
//
// A clock that has been set back makes the marks of the time before it worthless: a transaction with an id past such a mark stamps by the
// new clock, earlier than the mark by as much as the clock was set back. They are dropped.
func (s *settler) note(m mark) {
	for len(s.marks) > 0 && s.marks[len(s.marks)-1].time > m.time {
		s.marks = s.marks[:len(s.marks)-1]
	}
	if n := len(s.marks); n > 0 && s.marks[n-1].next >= m.next {
		if s.marks[n-1].next == m.next {
			s.marks[n-1].time = m.time // nobody has begun since: the later moment says more
		}
		// A smaller next comes from a standby that lags: the mark before stays true, and will do.
		return
	}
	if len(s.marks) >= maxMarks {
		s.thin()
	}
	m.since = m.time
	s.marks = append(s.marks, m)
}

// thin drops every second mark but the first and the last.
func (s *settler) thin() {
	kept := s.marks[:0]
	for i, m := range s.marks {
		if i%2 == 0 || i == len(s.marks)-1 {
			kept = append(kept, m)
		}
	}
	s.marks = kept
}

// reach says how far a range may settle, each part of which was read under a snapshot whose xmin was xmin or more: no row with an
// earlier updated_at can appear in it any more. MinInstant: it may not.
func (s *settler) reach(xmin uint64) schemas.Instant {
	m, ok := s.best(xmin)
	if !ok {
		return schemas.MinInstant
	}
	return m.time.Add(-s.overlap)
}

// best is the latest mark whose earlier transactions are all over for such a snapshot.
func (s *settler) best(xmin uint64) (mark, bool) {
	i := s.after(xmin)
	if i == 0 {
		return mark{}, false
	}
	return s.marks[i-1], true
}

// waiting is since about when a transaction has been open that such a snapshot does not show; false: none is.
func (s *settler) waiting(xmin uint64) (schemas.Instant, bool) {
	i := s.after(xmin)
	if i == len(s.marks) {
		return 0, false
	}
	return s.marks[i].since, true
}

func (s *settler) after(xmin uint64) int {
	i, _ := slices.BinarySearchFunc(s.marks, xmin, func(m mark, xmin uint64) int {
		if m.next <= xmin {
			return -1
		}
		return 1
	})
	return i
}

// forget drops the marks that a better one has replaced for snapshots with this xmin, and so for all later ones.
func (s *settler) forget(xmin uint64) {
	if i := s.after(xmin); i > 1 {
		s.marks = slices.Delete(s.marks, 0, i-1)
	}
}

func (s *settler) reset() { s.marks = nil }
