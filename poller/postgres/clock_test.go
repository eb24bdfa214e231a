package postgres

import "testing"

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
	a := clock{xmin: 9, xmax: 9, standby: true, position: 7}
	b := clock{xmin: 9, xmax: 9, standby: true, position: 6}
	if !b.olderThan(&a) || a.olderThan(&b) {
		t.Error("two standbys are compared by how far they have replayed")
	}
}
