package paging

import (
	"context"
	"fmt"
)

const (
	// maxIdle is how many pages in a row may bring no row that the pass has not met before we believe that "more
	// follows" stays true for ever.
	maxIdle = 10
	// maxPages bounds one pass.
	maxPages = 50_000
)

// pass is one traversal of the pages of a set, or of a part of it. It keeps of an answer what the rules ask
// for, and no rows but their ids.
type pass struct {
	r       *Reader
	set     *Set
	created Span
	size    int   // asked for, in every request: a page's number means nothing otherwise
	began   int64 // what changed since counts for nothing in a growing set

	// Of all answers: how many there are, the most rows of a page that is not the last, the most that the
	// service said that such a page has, the greatest count that is more than the rows on its page, the newest
	// count, and whether another came before it.
	answers       int
	full, claimed int
	total         int
	count         int
	recounted     bool
	order         orderFinder
	known         map[Day]int // how many rows were created on each day; nil: nobody asks

	// Of the pass itself, which in a backward one begins with the last page: before that it looked for it.
	met    collection
	before int // how many different rows were met maxIdle answers before idle looks
	// last is the number of the last page, which had so many rows (end); exact: it said itself that it is.
	last, end int
	exact     bool
	backward  bool
	endless   bool
	doubt     string
}

// ask asks for a page and notes what came.
//
// An empty page 0 closes a day only if a second answer says the same: a service that has just lost its
// tables, or a gateway that has nothing to say, answers like this too.
func (p *pass) ask(ctx context.Context, page int) (Answer, error) {
	a, err := p.set.Ask(ctx, p.created, page, p.size)
	if err == nil && page == 0 && len(a.Rows) == 0 && !a.More && p.set.Motion == Shrinking {
		a, err = p.set.Ask(ctx, p.created, page, p.size)
	}
	if err != nil {
		return a, err
	}
	a.page = page
	p.note(a)
	return a, nil
}

func (p *pass) note(a Answer) {
	p.recounted = p.recounted || p.answers > 0 && a.Count != p.count
	p.answers++
	p.count = a.Count
	if a.Count > len(a.Rows) {
		p.total = max(p.total, a.Count)
	}
	if a.More {
		p.full, p.claimed = max(p.full, len(a.Rows)), max(p.claimed, min(a.Size, p.size))
	}
	p.meet(a.Rows)
	p.order.add(a.Rows)
	if p.known != nil {
		for _, row := range a.Rows {
			if row.Created != Past {
				p.known[row.Created]++
			}
		}
	}
	p.r.learn(p.size, a)
	if p.doubt == "" {
		p.doubt = a.Doubt
	}
}

func (p *pass) meet(rows []Row) {
	for _, row := range rows {
		p.met.add(row.ID, p.set.Motion == Growing && row.Updated >= p.began)
	}
}

// tell counts a pass over several pages.
func (p *pass) tell() {
	if p.answers > 1 {
		p.r.onPass()
	}
}

// forward reads from page 0 until no more pages follow. A short or empty page is not the end. When the
// service refuses a page although it said at the one before that more follow, rows have left meanwhile.
func (p *pass) forward(ctx context.Context) error {
	defer p.tell()
	a, err := p.ask(ctx, 0)
	for ; err == nil; a, err = p.ask(ctx, a.page+1) {
		switch {
		case a.Beyond:
			p.last = a.page - 1
			return nil
		case !a.More:
			p.last, p.end, p.exact = a.page, len(a.Rows), true
			p.r.learnOrder(&p.order)
			return nil
		case p.idle():
			p.endless = true
			return nil
		}
	}
	return err
}

// idle tells whether the last maxIdle answers brought nothing that the pass had not met. It looks ever less
// often, because it has to sort what was met.
func (p *pass) idle() bool {
	powerOfTwo := func(n int) bool { return n&(n-1) == 0 }
	switch {
	case p.answers > maxPages:
		return true
	case powerOfTwo(p.answers + maxIdle):
		p.before = p.met.len()
	case p.answers > maxIdle && powerOfTwo(p.answers):
		return p.met.len() == p.before
	}
	return false
}

// findLast asks for the last page, first at guess. It gives up behind limit (endless). What the service says
// of the number of rows only shortens the search: one jump, and if that goes past the end, the search goes on
// from where it was.
func (p *pass) findLast(ctx context.Context, guess, limit int) (Answer, error) {
	a, err := p.ask(ctx, guess)
	low, jumped := -1, false // low is the highest page of which we know that more follow
	for err == nil {
		next, hint := a.page+1, (a.Count-1)/p.r.page(p.size)
		past := a.Beyond || !a.More
		switch {
		case !a.Beyond && !a.More && (a.page == 0 || len(a.Rows) > 0):
			return a, nil
		case past && low >= 0:
			if next = low + 1; next == a.page {
				return a, nil // rows have left: the pass begins with the first page below that has some
			}
		case past:
			if jumped || a.Count <= 0 || hint >= a.page-1 {
				return a, nil
			}
			next, jumped = hint, true
		case p.idle() || next > limit:
			p.endless = true
			return a, nil
		default:
			low = a.page
			if !jumped && hint > next && hint <= limit {
				next, jumped = hint, true
			}
		}
		a, err = p.ask(ctx, next)
	}
	return a, err
}

// back reads from the last page, for which it looks from guess to limit, to page 0. Each page that says that
// it is the last begins the pass anew: what stood above it was read, but is no part of the pass.
func (p *pass) back(ctx context.Context, guess, limit int) error {
	defer p.tell()
	p.backward = true
	a, err := p.findLast(ctx, guess, limit)
	if err != nil || p.endless {
		return err
	}
	for {
		if a.Beyond || !a.More {
			p.met = collection{}
			p.meet(a.Rows)
			p.last, p.end, p.exact = a.page, len(a.Rows), !a.Beyond
		}
		if a.page == 0 {
			return nil
		}
		if p.set.Left != nil {
			p.set.Left(a.page)
		}
		if a, err = p.ask(ctx, a.page-1); err != nil {
			return err
		}
	}
}

// snapshot: the set has come to fit one page, which holds all of it at one instant.
func (p *pass) snapshot() bool { return p.exact && p.last == 0 }

// atMost is how many rows the set can have had at most when its last page was read; -1 where the pass does
// not show it. It counts the pages below the last as full, so it must know how many rows a full page has: as
// many as were asked for, or as many as the service says itself, if a page had so many. That pages are all of
// one length does not show it: each may have left out as many.
func (p *pass) atMost() int {
	if !p.exact {
		return -1
	}
	known := p.full >= p.size || p.full == p.claimed
	switch {
	case p.last == 0:
		return p.end
	case !known, p.end > p.full, p.end == 0: // an empty one contradicts the page below it
		return -1
	}
	return p.last*p.full + p.end
}

// complaint says why the pass came to nothing.
func (p *pass) complaint() string {
	if p.doubt != "" {
		return p.doubt
	}
	if p.answers > maxPages {
		return fmt.Sprintf("it has more pages than one pass reads (%d)", maxPages)
	}
	return fmt.Sprintf("the service says for ever that more pages follow (asked for %d, %d rows)",
		p.answers, p.met.len())
}
