package postgres

import (
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"pgregory.net/rapid"
)

func TestTwoSnapshotsTogetherShowWhatEitherShows(t *testing.T) {
	draw := func(t *rapid.T) snapshot {
		s := snapshot{xmax: rapid.Uint64Range(10, 20).Draw(t, "xmax")}
		s.xmin = s.xmax
		for id := s.xmax - 1; id >= 8; id-- {
			if rapid.IntRange(0, 2).Draw(t, "runs") == 0 {
				s.running = append([]uint64{id}, s.running...)
				s.xmin = id
			}
		}
		return s
	}
	rounds.Check(t, 100, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		both := a.with(&b)
		for id := range uint64(25) {
			if both.isOver(id) != (a.isOver(id) || b.isOver(id)) || id < both.xmin && !both.isOver(id) {
				t.Fatalf("%d in %s, which is %s and %s", id, both.String(), a.String(), b.String())
			}
		}
	})
}

// A floor that names fewer transactions is still a floor: it shows nothing that the clock does not show, and
// whatever the clock shows besides is looked for next time.
func TestASnapshotThatIsCutShowsNoMore(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		whole := snapshot{xmin: 10, xmax: 40}
		for id := range uint64(40) {
			if id >= 10 && (id == 10 || rapid.Bool().Draw(t, "runs")) {
				whole.running = append(whole.running, id)
			}
		}
		most := rapid.IntRange(1, 12).Draw(t, "most")
		short := whole.cut(most)
		if len(short.running) > most {
			t.Fatalf("%d named, at most %d", len(short.running), most)
		}
		if !whole.covers(&short) {
			t.Fatalf("%s shows what %s does not", short.String(), whole.String())
		}
		later := clock{snapshot: coarse(60)} // all are over
		if short.isOver(10) || short.low(&later) != 10 {
			t.Fatal("the oldest is not looked for when it has ended")
		}
		later.snapshot = whole
		if low := short.low(&later); low != short.xmax {
			t.Fatalf("low %d: beside a transaction that stays open only what is younger is looked for", low)
		}
	})
}
