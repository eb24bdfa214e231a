package paging

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

const (
	// maxIdle is how many pages in a row may bring no row that the pass has not met before we believe that "more
	// follows" stays true for ever.
	maxIdle = 10
	// maxPages bounds one pass.
	maxPages = 50_000
)

// pass is one traversal of the pages of a set, or of a part of it.
type pass struct {
	r       *Reader
	set     *Set
	created Span
	size    int // asked for, in every request: a page's number means nothing otherwise
	began   int64

	// answers in the order in which they came. Those from begin on are the pass: before them it looked for the
	// last page.
	answers []Answer
	begin   int
	// last is the number of the last page; exact: that page said itself that it is.
	last     int
	exact    bool
	backward bool
	endless  bool
	doubt    string
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
	p.answers = append(p.answers, a)
	p.r.learn(p.size, a)
	if p.doubt == "" {
		p.doubt = a.Doubt
	}
}

// count tells of a pass over several pages.
func (p *pass) count() {
	if len(p.answers) > 1 {
		p.r.onPass()
	}
}

// forward reads from page 0 until no more pages follow. A short or empty page is not the end. When the
// service refuses a page although it said at the one before that more follow, rows have left meanwhile.
func (p *pass) forward(ctx context.Context) error {
	defer p.count()
	a, err := p.ask(ctx, 0)
	for ; err == nil; a, err = p.ask(ctx, a.page+1) {
		switch {
		case a.Beyond:
			p.last = a.page - 1
			return nil
		case !a.More:
			p.last, p.exact = a.page, true
			p.r.learnOrder(p.answers)
			return nil
		case p.idle():
			p.endless = true
			return nil
		}
	}
	return err
}

// idle tells whether the last maxIdle answers brought nothing that the pass had not met. It looks ever less
// often, because it sorts all that was met.
func (p *pass) idle() bool {
	n := len(p.answers)
	if n > maxPages {
		return true
	}
	if n <= maxIdle || n&(n-1) != 0 {
		return false
	}
	return len(distinct(p.answers)) == len(distinct(p.answers[:n-maxIdle]))
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
	defer p.count()
	p.backward = true
	a, err := p.findLast(ctx, guess, limit)
	if err != nil || p.endless {
		return err
	}
	for {
		if a.Beyond || !a.More {
			p.begin = len(p.answers) - 1
			p.last, p.exact = a.page, !a.Beyond
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

// rows are the different rows that the pass met, sorted by name.
func (p *pass) rows() []Row { return distinct(p.answers[p.begin:]) }

// distinct sorts the rows of answers by name and drops all but the newest of each. Sorting takes a fifth of
// the time that a map of them would.
func distinct(answers []Answer) []Row {
	n := 0
	for _, a := range answers {
		n += len(a.Rows)
	}
	rows := make([]Row, 0, n)
	for _, a := range answers {
		rows = append(rows, a.Rows...)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(byName(a, b), cmp.Compare(b.Updated, a.Updated)) })
	return slices.CompactFunc(rows, func(a, b Row) bool { return byName(a, b) == 0 })
}

// atMost is how many rows the set can have had at most when its last page was read; -1 where the pass does
// not show it. It counts the pages below the last as full, so it must know how many rows a full page has: as
// many as were asked for, or as many as the service says itself, if a page had so many. That pages are all of
// one length does not show it: each may have left out as many.
func (p *pass) atMost() int {
	if !p.exact {
		return -1
	}
	end := p.answers[len(p.answers)-1]
	if p.backward {
		end = p.answers[p.begin]
	}
	full, claimed := 0, 0
	for _, a := range p.answers {
		if a.More {
			full, claimed = max(full, len(a.Rows)), max(claimed, min(a.Size, p.size))
		}
	}
	last, known := len(end.Rows), full >= p.size || full == claimed
	switch {
	case p.last == 0:
		return last
	case !known, last > full, last == 0: // empty: it contradicts the page below, which says that more follows
		return -1
	}
	return p.last*full + last
}

// complaint says why the pass came to nothing.
func (p *pass) complaint() string {
	if p.doubt != "" {
		return p.doubt
	}
	return fmt.Sprintf("the service says for ever that more pages follow (asked for %d, %d rows)",
		len(p.answers), len(distinct(p.answers)))
}
