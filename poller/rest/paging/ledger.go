package paging

import "math"

// ledger is what the passes over one set met together.
type ledger struct {
	motion Motion
	began  int64 // rows changed since are not held against a pass over a growing set
	passes int
	rows   []tally // sorted by name
	// quiet is how many passes in a row brought no row that was new.
	quiet int
	// pages and count bound the number of rows: by the pages up to the last, and by what the service counts.
	pages, count bound
	// total: the service has counted more rows than stand on a page, so it counts all of them.
	total bool
}

// tally is a row and how often it was met.
type tally struct {
	Row
	passes, last int // how many passes met it, and which one last
}

// bound says that the set had at most so many rows (-1: unknown) at an instant, and that the rows which the
// passes from since on met were in it then.
type bound struct{ rows, since int }

func newLedger(motion Motion, began int64) *ledger {
	return &ledger{motion: motion, began: began, pages: bound{rows: -1}, count: bound{rows: -1}}
}

// add enters a pass. metByOneOnly is how many rows either this pass or the one before it met, and the other
// did not. Rows changed since the beginning do not count.
func (l *ledger) add(p *pass) (metByOneOnly int) {
	fresh := 0
	l.passes++
	met := p.rows()
	merged := make([]tally, 0, max(len(l.rows), len(met)))
	old := l.rows
	for len(old) > 0 || len(met) > 0 {
		t := tally{}
		switch {
		case len(met) == 0 || len(old) > 0 && byName(old[0].Row, met[0]) < 0: // not met by this pass
			t, old = old[0], old[1:]
			if t.last == l.passes-1 && !l.changed(t.Row) {
				metByOneOnly++
			}
			merged = append(merged, t)
			continue
		case len(old) > 0 && byName(old[0].Row, met[0]) == 0:
			t, old = old[0], old[1:]
		case !l.changed(met[0]):
			fresh++
		}
		if t.last != l.passes-1 && !l.changed(met[0]) {
			metByOneOnly++
		}
		merged = append(merged, tally{met[0], t.passes + 1, l.passes})
		met = met[1:]
	}
	l.rows = merged
	if l.quiet++; fresh > 0 {
		l.quiet = 0
	}
	l.limit(p)
	return metByOneOnly
}

func (l *ledger) changed(row Row) bool { return l.motion == Growing && row.Updated >= l.began }

// limit takes over what p shows of the number of rows.
func (l *ledger) limit(p *pass) {
	count := p.answers[len(p.answers)-1].Count
	for _, a := range p.answers {
		l.total = l.total || a.Count > max(p.r.page(p.size), len(a.Rows))
	}
	if l.motion == Growing { // the rows met before the bound was known are in it: the whole of a forward pass is
		l.count, l.pages = bound{rows: count}, bound{rows: -1}
		if !p.backward {
			l.pages.rows = p.atMost()
		}
		return
	}
	// Of a shrinking set those count that were met after. A bound that stays the same holds since it was first
	// known, for no row can have left.
	if pages, since := p.atMost(), l.passes; pages >= 0 && pages != l.pages.rows {
		if !p.backward { // its bound came last
			since++
		}
		l.pages = bound{pages, since}
	}
	for _, a := range p.answers {
		if a.Count != count {
			return // rows left during the pass
		}
	}
	if count != l.count.rows {
		l.count = bound{count, l.passes}
	}
}

// proven tells whether as many different rows were met as b says there were: then they are those rows.
func (l *ledger) proven(b bound) bool {
	if b.rows < 0 {
		return false
	}
	met := 0
	for _, t := range l.rows {
		if t.last >= b.since {
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
	for _, t := range l.rows {
		if t.passes < l.passes && !l.changed(t.Row) {
			missed++
			misses += l.passes - t.passes
		}
	}
	rate := 0.1 // we believe nothing better of any service
	if missed > 0 {
		n := float64(misses)
		rate = max(rate, (n+3*math.Sqrt(n))/float64(missed*l.passes))
	}
	if rate >= 1 {
		return 1
	}
	return float64(max(1, len(l.rows))) * math.Pow(rate, float64(l.quiet))
}
