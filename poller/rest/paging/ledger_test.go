package paging

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"pgregory.net/rapid"
)

// plainLedger is what a ledger says, from a map of what each pass met.
type plainLedger struct {
	passes []map[uint64]bool // id -> changed
	quiet  int
}

func (l *plainLedger) add(met map[uint64]bool) (metByOneOnly int) {
	last := met
	if len(l.passes) > 0 {
		last = l.passes[len(l.passes)-1]
	}
	l.quiet++
	all := l.rows()
	for id, changed := range met {
		if _, known := all[id]; !known && !changed {
			l.quiet = 0
		}
		if _, before := last[id]; !before && !changed {
			metByOneOnly++
		}
	}
	for id, changed := range last {
		if _, again := met[id]; !again && !changed {
			metByOneOnly++
		}
	}
	l.passes = append(l.passes, met)
	return metByOneOnly
}

// rows are all that any pass met, as they were last met.
func (l *plainLedger) rows() map[uint64]bool {
	all := map[uint64]bool{}
	for _, met := range l.passes {
		maps.Copy(all, met)
	}
	return all
}

func (l *plainLedger) metSince(pass int) int {
	since := map[uint64]bool{}
	for i, met := range l.passes {
		if i+1 >= pass {
			maps.Copy(since, met)
		}
	}
	return len(since)
}

func (l *plainLedger) hidden() float64 {
	missed, misses := 0, 0
	for id, changed := range l.rows() {
		n := 0
		for _, met := range l.passes {
			if _, ok := met[id]; !ok {
				n++
			}
		}
		if n > 0 && !changed {
			missed++
			misses += n
		}
	}
	rate := 0.1
	if missed > 0 {
		rate = max(rate, (float64(misses)+3*math.Sqrt(float64(misses)))/float64(missed*len(l.passes)))
	}
	if rate >= 1 {
		return 1
	}
	return float64(max(1, len(l.rows()))) * math.Pow(rate, float64(l.quiet))
}

func TestALedgerAnswersLikeMapsOfWhatEachPassMet(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		growing := rapid.Bool().Draw(t, "growing")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.SampledFrom([]uint64{1, 5, 100}).Draw(t, "rows")
		spread := rapid.SampledFrom([]uint64{1, 0x9E3779B97F4A7C15}).Draw(t, "spread")
		misses := rapid.SampledFrom([]int{0, 1, 300, 1000}).Draw(t, "of a thousand rows a pass misses")
		l, want := newLedger(growing), &plainLedger{}
		m := &Machine{r: NewReader(true), set: Set{Growing: growing}}
		for range rapid.SampledFrom([]int{1, 3, 6}).Draw(t, "passes") {
			met := map[uint64]bool{}
			p := m.newPass(Always, PageSize)
			for range rng.IntN(3) + 1 { // again and again, in another order
				for _, i := range rng.Perm(int(n)) {
					id := uint64(i) * spread
					if rng.IntN(1000) >= misses {
						changed := growing && rng.IntN(20) == 0
						met[id] = met[id] || changed
						p.meet(Answer{Rows: []Row{{ID: id, Updated: map[bool]int64{true: 0, false: -1}[changed]}}})
					}
				}
			}
			got, expected := l.enter(p), want.add(met)
			if got != expected || len(l.rows) != len(want.rows()) || l.quiet != want.quiet {
				t.Fatalf("pass %d: %d rows met by one only, %d rows, quiet %d; expected %d, %d, %d", l.passes, got,
					len(l.rows), l.quiet, expected, len(want.rows()), want.quiet)
			}
			since := rng.IntN(l.passes + 1)
			n := want.metSince(since)
			for _, rows := range []int{-1, n - 1, n, n + 1} {
				if l.proven(bound{rows, since}) != (rows >= 0 && rows == n) {
					t.Fatalf("%d rows since pass %d of %d: expected %d", rows, since, l.passes, n)
				}
			}
			if a, b := l.hidden(), want.hidden(); a != b {
				t.Fatalf("hidden %g, expected %g", a, b)
			}
		}
	})
}
