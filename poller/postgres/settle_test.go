package postgres

import (
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

func TestAClockThatIsSetBackTakesItsMarksAlong(t *testing.T) {
	s := settler{overlap: 10 * time.Microsecond}
	s.note(mark{time: 100, next: 5})
	s.note(mark{time: 200, next: 6})
	s.note(mark{time: 150, next: 7})
	if got := s.reach(6); got != 90 {
		t.Errorf("settled reaches %d by the marks of a clock that was set back from 200 to 150, expected 90", got)
	}
}

func TestMarksAreBoundedAndThinningNeverSettlesFurther(t *testing.T) {
	s := settler{overlap: 0}
	exact := map[uint64]schemas.Instant{}
	for i := range 50_000 {
		m := mark{time: schemas.Instant(10 * i), next: uint64(i)}
		s.note(m)
		exact[m.next] = m.time
	}
	if len(s.marks) > maxMarks {
		t.Errorf("%d marks are kept, the bound is %d", len(s.marks), maxMarks)
	}
	for xmin := uint64(0); xmin < 50_000; xmin += 37 {
		if got := s.reach(xmin); got > exact[xmin] {
			t.Fatalf("with xmin %d settled reaches %d, without thinning %d", xmin, got, exact[xmin])
		}
	}
	if got := s.reach(49_999); got != exact[49_999] {
		t.Errorf("the newest mark was thinned away: reach %d", got)
	}
}

func TestASnapshotIsOlderWhereItShowsLess(t *testing.T) {
	running := func(ids ...uint64) map[uint64]struct{} {
		m := map[uint64]struct{}{}
		for _, id := range ids {
			m[id] = struct{}{}
		}
		return m
	}
	read := clock{xmin: 10, xmax: 20, next: 22, running: running(10, 15)}
	for _, c := range []struct {
		name  string
		clock clock
		older bool
	}{
		{"the same", clock{xmin: 10, xmax: 20, next: 22, running: running(10, 15)}, false},
		{"one has ended", clock{xmin: 10, xmax: 20, next: 22, running: running(10)}, false},
		{"new ones have begun", clock{xmin: 10, xmax: 30, next: 30, running: running(10, 25)}, false},
		{"a running one had ended", clock{xmin: 10, xmax: 20, next: 22, running: running(10, 12)}, true},
		{"fewer have completed", clock{xmin: 10, xmax: 19, next: 22, running: running(10)}, true},
		{"a standby, the oldest had ended", clock{xmin: 9, xmax: 20, next: 22, standby: true}, true},
	} {
		if got := c.clock.olderThan(&read); got != c.older {
			t.Errorf("%s: older %v", c.name, got)
		}
	}
	a, b := clock{xmin: 9, xmax: 9, standby: true, position: 7}, clock{xmin: 9, xmax: 9, standby: true, position: 6}
	if !b.olderThan(&a) || a.olderThan(&b) {
		t.Error("two standbys are compared by how far they have replayed")
	}
}

func TestAChunkSizeFollowsTheTimeOfItsRowsAndNotThatOfTheScanBeforeThem(t *testing.T) {
	s := newSizer(100_000)
	for range 20 {
		n := s.next()
		s.took(n, 100*n, 40*time.Second, 40*time.Second+time.Duration(n)*time.Microsecond) // no index: a whole scan before the first row
	}
	if s.next() != 100_000 {
		t.Errorf("a table without an index is read %d rows at a time", s.next())
	}
	s.cancelled(s.next())
	if got := s.next(); got != 50_000 {
		t.Errorf("after a timeout the next chunk is of %d rows, expected half", got)
	}
	for range 20 {
		n := s.next()
		s.took(n, 100*n, 0, time.Duration(n)*time.Millisecond)
	}
	if got := s.next(); got < 1500 || got > 6000 {
		t.Errorf("rows of a millisecond are read %d at a time, expected about 3 s of them", got)
	}
	s.took(s.next(), s.next()<<20, 0, time.Millisecond)
	if got := s.next(); got > 2*leastRows {
		t.Errorf("rows of a MiB are read %d at a time", got)
	}
	for s.cancelled(s.next()) {
	}
	if got := s.next(); got != leastRows {
		t.Errorf("the smallest chunk is of %d rows", got)
	}
}
