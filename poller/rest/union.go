package rest

import (
	"math"

	"github.com/storestream/storestream/schemas"
)

// union is what all passes over one piece met together.
type union struct {
	motion motion
	page   int
	steady int
	chance float64
	start  schemas.Instant // rows changed since are not held against a pass over a growing piece
	passes int
	met    map[key]tally

	// count is meta.count while it stays the same, and during are the rows met since it became so.
	count  int
	total  bool // count has exceeded a page: it is not the number of rows on one
	during map[key]struct{}

	// quiet is how many passes in a row brought nothing new.
	quiet int
}

// tally is how often a row was met.
type tally struct {
	passes  int
	last    int // the last pass that met it
	updated schemas.Instant
}

// hiddenChance is reader.chance of all reads.
const hiddenChance = 1e-9

func newUnion(r *reader, m motion) *union {
	return &union{motion: m, page: r.pageOf(r.size), steady: r.steady, chance: r.chance, met: map[key]tally{}, count: -1, during: map[key]struct{}{}}
}

// add counts a pass. fresh is how many rows it brought that no pass had, apart how many rows one of this pass and the one before it met
// and the other did not; both without those changed since the start.
func (u *union) add(w *walk) (fresh, apart int) {
	u.passes++
	for _, g := range w.seen {
		u.glimpse(g)
	}
	for k, s := range w.rows {
		t, known := u.met[k]
		if !u.changed(s.updated) {
			if !known {
				fresh++
			}
			if t.last != u.passes-1 {
				apart++
			}
		}
		u.met[k] = tally{t.passes + 1, u.passes, s.updated}
	}
	for _, t := range u.met {
		if t.last == u.passes-1 && !u.changed(t.updated) {
			apart++
		}
	}
	if u.quiet++; fresh > 0 {
		u.quiet = 0
	}
	return fresh, apart
}

func (u *union) changed(updated schemas.Instant) bool {
	return u.motion == growing && updated >= u.start
}

// glimpse follows meta.count. Rows only leave a shrinking piece, so while count stays the same none has left, and when as many
// rows were met as it says, they are all of them. A row that was met before count changed may be one that has left and made room for one not
// met: it is forgotten. From a growing piece none leaves: all that was ever met counts against the newest count.
func (u *union) glimpse(g glimpse) {
	if g.beyond || g.count < 0 {
		return
	}
	if g.count != u.count {
		u.count = g.count
		if u.motion == shrinking {
			clear(u.during)
		}
	}
	u.total = u.total || g.count > max(u.page, len(g.rows))
	for _, s := range g.rows {
		u.during[s.key] = struct{}{}
	}
}

// counted: as many different rows were met as meta.count says there are, and it has shown that it counts all, not one page.
func (u *union) counted() bool { return u.total && len(u.during) == u.count }

// settled tells whether pass n was the last one needed.
func (u *union) settled(w *walk, n, fresh, apart int) bool {
	if u.motion == growing {
		return w.exact && apart == 0 || u.counted() || u.unlikely()
	}
	return w.clean() && fresh == 0 || n > u.steady && (u.counted() || u.unlikely())
}

// unlikely: so many passes in a row brought nothing new that a hidden row must have been missed by each of them, which has, all rows
// together, less than the chance allowed. Assumed: a pass misses a row independently of the other passes (their page sizes differ, so that rows at
// the bounds of one are inside a page of the next), and hidden rows are missed no more often than those that were missed at all. That rate is
// taken over the rows that some pass missed, not over all: with a thousand rows that are permuted among fifty thousand that are not, the mean
// would make the thousand look safe.
func (u *union) unlikely() bool {
	missed, misses := 0, 0
	for _, t := range u.met {
		if t.passes < u.passes && !u.changed(t.updated) {
			missed++
			misses += u.passes - t.passes
		}
	}
	rate := 0.1 // nothing better is believed of any service
	if missed > 0 {
		n := float64(misses)
		rate = max(rate, (n+3*math.Sqrt(n))/float64(missed*u.passes))
	}
	if rate >= 1 {
		return false
	}
	return float64(max(1, len(u.met)))*math.Pow(rate, float64(u.quiet)) < u.chance
}
