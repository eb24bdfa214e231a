package paging

import "math"

// ledger is the rows that the passes over one set met together.
type ledger struct {
	motion Motion
	passes int
	sound  int // so many passes in a row were
	rows   tallies
	// quiet is how many passes in a row brought no row that was new.
	quiet int
	// pages and count bound the number of rows: by the pages up to the last, and by the service's count.
	pages, count bound
	// alike is the count of every answer that had rows. The passes since were of one set of so many.
	alike bound
}

// bound says that the set had at most so many rows (-1: unknown) at an instant, and that the rows which the
// passes from since on met were in it then.
type bound struct{ rows, since int }

func newLedger(motion Motion) *ledger {
	none := bound{rows: -1}
	return &ledger{motion: motion, pages: none, count: none, alike: none}
}

// enter adds a pass, and takes its rows from it. metByOneOnly is how many rows either this pass or the one
// before it met, and the other did not. Rows changed since the beginning do not count.
func (l *ledger) enter(p *pass) (metByOneOnly int) {
	fresh := false
	l.rows = merge(&l.rows, p.met.rows(), func(old, met *tally) tally {
		t := tally{misses: uint8(l.passes), ago: uint8(l.passes)} // so far no pass met it
		if old != nil {
			t = *old
		}
		before := old != nil && t.ago == 0
		if met == nil {
			t.misses++
			t.ago++
		} else {
			t.id, t.changed, t.ago = met.id, met.changed, 0
		}
		if !t.changed {
			fresh = fresh || old == nil
			if before != (met != nil) {
				metByOneOnly++
			}
		}
		return t
	})
	l.passes++
	if l.sound++; !p.sound() {
		l.sound = 0
	}
	if l.quiet++; fresh {
		l.quiet = 0
	}
	l.limit(p)
	return metByOneOnly
}

// limit enters the bounds that p shows for the number of rows.
func (l *ledger) limit(p *pass) {
	if l.motion == Growing { // the rows met before the bound was known are in it: the whole of a forward pass is
		l.count.rows = max(l.count.rows, p.greatest)
		if l.pages.rows = -1; !p.backward {
			l.pages.rows = p.atMost()
		}
		return
	}
	// Of a shrinking set those count that were met after. A bound that every pass finds the same holds since it
	// was first known, for no row can have left.
	if pages := p.atMost(); pages != l.pages.rows {
		l.pages = bound{pages, l.passes}
		if !p.backward { // its bound came last
			l.pages.since++
		}
	}
	if p.alike != l.alike.rows {
		l.alike = bound{p.alike, l.passes}
	}
	n := p.n
	if !p.ofOneSet(n) {
		n = -1
	}
	if n != l.count.rows {
		l.count = bound{n, l.passes}
	}
}

// shown reports whether the rows met since b was known are all that there were then.
//
// Of a shrinking set only passes count that met no row for the first time. A row that has come to it after
// all, late or with its time set back, pushes others up, and one of them may have gone to a page that was
// read already: then the one that came would make up the number in its place.
func (l *ledger) shown(b bound) bool {
	if l.motion == Shrinking {
		b.since = max(b.since, l.passes-l.quiet+1)
	}
	return b.since <= l.passes && l.proven(b)
}

// proven reports whether as many different rows were met as b says there were: then they are those rows.
func (l *ledger) proven(b bound) bool {
	if b.rows < 0 || b.rows > l.rows.n {
		return false
	}
	met := 0
	for t := range l.rows.all {
		if l.passes-int(t.ago) >= b.since {
			met++
		}
	}
	return met == b.rows
}

// hidden is a bound of the chance that some row was missed by all passes: so many passes in a row brought
// nothing new that each of them would have had to miss it.
//
// Assumed: a pass misses a row independently of the other passes (their page sizes differ, so that rows at
// the edges of pages in one are inside of a page in the next), and hidden rows are missed no more often than
// those that some pass missed. The rate is taken over these rows and not over all: with a thousand rows that
// are permuted among fifty thousand that are not, the mean would make the thousand look safe.
func (l *ledger) hidden() float64 {
	missed, misses := 0, 0
	for t := range l.rows.all {
		if t.misses > 0 && !t.changed {
			missed++
			misses += int(t.misses)
		}
	}
	rate := 0.1 // no service is assumed to do better
	if missed > 0 {
		n := float64(misses)
		rate = max(rate, (n+3*math.Sqrt(n))/float64(missed*l.passes))
	}
	if rate >= 1 {
		return 1
	}
	return float64(max(1, l.rows.n)) * math.Pow(rate, float64(l.quiet))
}
