package postgres

import (
	"errors"
	"testing"

	"github.com/storestream/storestream/poller"
)

func TestASnapshotIsOlderWhereItShowsLess(t *testing.T) {
	running := func(ids ...uint64) []uint64 { return ids }
	read := clock{snapshot: snapshot{10, 20, running(10, 15)}, next: 22}
	for _, c := range []struct {
		name  string
		clock clock
		older bool
	}{
		{"the same", clock{snapshot: snapshot{10, 20, running(10, 15)}, next: 22}, false},
		{"one has ended", clock{snapshot: snapshot{10, 20, running(10)}, next: 22}, false},
		{"new ones have begun", clock{snapshot: snapshot{10, 30, running(10, 25)}, next: 30}, false},
		{"a running one had ended", clock{snapshot: snapshot{10, 20, running(10, 12)}, next: 22}, true},
		{"fewer have completed", clock{snapshot: snapshot{10, 19, running(10)}, next: 22}, true},
		{"a standby, the oldest had ended", clock{snapshot: snapshot{9, 20, nil}, next: 22, standby: true}, true},
	} {
		if got := c.clock.olderThan(&read); got != c.older {
			t.Errorf("%s: older %v", c.name, got)
		}
	}
	a := clock{snapshot: coarse(9), standby: true, position: 7}
	b := clock{snapshot: coarse(9), standby: true, position: 6}
	if !b.olderThan(&a) || a.olderThan(&b) {
		t.Error("two standbys are compared by how far they have replayed")
	}
}

// A second look may find it. That read fails, and the pass that follows has to find it too.
func TestAHistoryThatIsLostStaysLostUntilALineageBegins(t *testing.T) {
	l := lineage{latest: &clock{snapshot: snapshot{xmin: 20, xmax: 20}, next: 20}}
	for range 2 {
		err := l.follow(&clock{snapshot: snapshot{xmin: 10, xmax: 10}, next: 10})
		if lost, ok := errors.AsType[*poller.LostError](err); !ok || !lost.Sweep {
			t.Errorf("%v, expected that the history is lost, and a sweep", err)
		}
	}
}
