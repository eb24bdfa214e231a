package paging

import (
	"math"
	"slices"
)

// ledger is the rows that the passes over one set met together.
type ledger struct {
	growing bool // the set is
	passes  int
	sound   int      // so many passes in a row were
	rows    []uint64 // in order
	// odd are the rows that some pass did not meet, or that have changed. They are few, unless rows move much.
	odd map[uint64]tally
	// quiet is how many passes in a row brought no row that was new.
	quiet int
	// pages and count bound the number of rows: by the pages up to the last, and by the service's count.
	pages, count bound
	// alike is the count of every answer that had rows. The passes since were of one set of so many.
	alike bound
}

// tally is the record of one row in all passes. Its zero value is a row that every pass met, unchanged.
type tally struct {
	// misses is how many passes did not meet the row, and ago how many of them came after the last one that did.
	misses, ago int
	// changed is set if the row had changed since the beginning when it was last met.
	changed bool
}

// bound is the greatest number of rows that the set can have had at an instant, -1 if unknown. The rows that
// the passes from since on met were in the set then.
type bound struct{ rows, since int }

func newLedger(growing bool) *ledger {
	none := bound{rows: -1}
	return &ledger{growing: growing, odd: map[uint64]tally{}, pages: none, count: none, alike: none}
}

// enter adds a pass, and takes its rows from it. metByOneOnly is how many rows either this pass or the one
// before it met, and the other did not. Rows changed since the beginning do not count.
func (l *ledger) enter(p *pass) (metByOneOnly int) {
	met, known, isNew := p.different(), l.rows, false
	for _, id := range met {
		if _, is := slices.BinarySearch(known, id); is {
			continue
		}
		l.rows = append(l.rows, id)
		isNew = isNew || !p.changed[id]
		if l.passes > 0 { // so far no pass met it
			l.odd[id] = tally{misses: l.passes, ago: l.passes}
		}
	}
	slices.Sort(l.rows)
	for _, id := range l.rows {
		t := l.odd[id]
		before := t.ago == 0
		_, isMet := slices.BinarySearch(met, id)
		if isMet {
			t.ago, t.changed = 0, p.changed[id]
		} else {
			t.misses++
			t.ago++
		}
		if !t.changed && before != isMet {
			metByOneOnly++
		}
		if t == (tally{}) {
			delete(l.odd, id)
		} else {
			l.odd[id] = t
		}
	}
	l.passes++
	if l.sound++; !p.sound() {
		l.sound = 0
	}
	if l.quiet++; isNew {
		l.quiet = 0
	}
	l.limit(p)
	p.met, p.changed = nil, nil
	return metByOneOnly
}

// limit enters the bounds that p shows for the number of rows.
func (l *ledger) limit(p *pass) {
	if l.growing { // the rows met before the bound was known are in it: the whole of a forward pass is
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
	if n := p.ofOneSet(); n != l.count.rows {
		l.count = bound{n, l.passes}
	}
}

// shown reports whether the rows met since b was known are all that there were then.
//
// Of a shrinking set only passes count that met no row for the first time. A row that has come to it after
// all, late or with its time set back, pushes others up. One of them may have gone to a page that was read
// already. Then the row that came would make up the number in its place.
func (l *ledger) shown(b bound) bool {
	if !l.growing {
		b.since = max(b.since, l.passes-l.quiet+1)
	}
	return b.since <= l.passes && l.proven(b)
}

// proven reports whether as many different rows were met, since a pass that there was, as b says there were:
// then they are those rows.
func (l *ledger) proven(b bound) bool {
	met := len(l.rows)
	for _, t := range l.odd {
		if l.passes-t.ago < b.since {
			met--
		}
	}
	return b.rows >= 0 && met == b.rows
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
	for _, t := range l.odd {
		if t.misses > 0 && !t.changed {
			missed++
			misses += t.misses
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
	return float64(max(1, len(l.rows))) * math.Pow(rate, float64(l.quiet))
}
