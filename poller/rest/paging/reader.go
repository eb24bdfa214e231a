package paging

import (
	"context"
	"fmt"
)

const (
	// PageSize is how many rows are asked for: what the service's document allows.
	PageSize = 1000
	// steadyPasses is how many passes over a past day use one page size, because the order may be stable.
	// After them the page size varies, and the service's own count and chance are believed.
	steadyPasses = 8
	// maxPasses bounds the passes over one part of a set. Random order with a few pages takes about ten.
	maxPasses = 60
	// maxParts bounds how often one set is cut.
	maxParts = 20_000
	// hiddenChance is how probable it may be that a row was missed where only chance speaks for a set.
	hiddenChance = 1e-9
)

// Reader reads sets of one service. It belongs to one goroutine. What it learns makes reads cheaper and
// decides nothing.
type Reader struct {
	now    func() int64
	onPass func()
	// What tests set otherwise.
	size, steady int
	chance       float64

	// Learned, for as long as the Reader lives. full is how many rows a page has that is not the last, 0 where
	// no such page was seen; stale: by an earlier read than the one in hand.
	full  int
	stale bool
	order Order
	cuts  cuts
}

// NewReader returns a Reader. now is the clock that stamps the rows, in the unit of Row.Updated; onPass hears
// of each pass that took several pages.
func NewReader(now func() int64, onPass func()) *Reader {
	return &Reader{now: now, onPass: onPass, size: PageSize, steady: steadyPasses, chance: hiddenChance}
}

// NewRead says that a read begins: a service that grants fewer rows a page from now on will be noticed.
func (r *Reader) NewRead() { r.stale = true }

// Order is how the service was last seen to sort.
func (r *Reader) Order() Order { return r.order }

// Page is how many rows a full page has.
func (r *Reader) Page() int { return r.page(r.size) }

// page is how many rows a full page has that was asked for with size.
func (r *Reader) page(size int) int {
	if r.full > 0 {
		return min(size, r.full)
	}
	return size
}

func (r *Reader) learn(size int, a Answer) {
	if a.More && size == r.size {
		if r.stale {
			r.full, r.stale = 0, false
		}
		r.full = max(r.full, len(a.Rows))
	}
	if !r.order.fits(a.Rows) {
		r.order = Unknown
	}
}

func (r *Reader) learnOrder(f *orderFinder) {
	if by, shown := f.found(); shown {
		r.order = by
	}
}

func (r *Reader) newPass(set *Set, created Span, size int) *pass {
	return &pass{r: r, set: set, created: created, size: size, began: r.now()}
}

// Count reads a shrinking set in one backward pass, and says that it is whole if the pass met as many rows as
// there were when it began: some n/1000 requests and one more. It looks for the last page at guess first, and
// gives up behind limit. With limit 0 it reads the set only if it fits one page. What is not whole was still
// read.
func (r *Reader) Count(ctx context.Context, set Set, guess, limit int) (Outcome, error) {
	p := r.newPass(&set, set.Created, r.size)
	err := p.back(ctx, guess, limit)
	o := Outcome{Rows: p.met.len(), Requests: p.answers, Paged: p.last > 0}
	o.Whole = err == nil && !p.endless && p.doubt == "" && o.Rows == p.atMost()
	return o, err
}

// Read reads a set in as many parts and passes as it takes.
func (r *Reader) Read(ctx context.Context, set Set) (Outcome, error) {
	total := Outcome{Whole: true}
	todo := r.cuts.of(set.Created, set.Like)
	var fit []part
	for n := 0; len(todo) > 0; n++ {
		created := todo[0]
		todo = todo[1:]
		if n >= maxParts {
			return Outcome{Why: fmt.Sprintf("it falls into too many parts (more than %d)", maxParts)}, nil
		}
		o, parts, err := r.part(ctx, &set, created)
		if err != nil {
			return o, err
		}
		if len(parts) > 0 {
			todo = append(parts, todo...)
			total.Paged, total.Requests = true, total.Requests+o.Requests
			continue
		}
		fit = append(fit, part{created, o.Rows})
		total.add(o)
	}
	total.Paged = total.Paged || len(fit) > 1
	r.cuts.learn(fit, set.Like, r.Page())
	return total, nil
}

// part reads the part of set that was created in a span if it fits one page or cannot be cut; otherwise it
// returns the parts to read instead.
//
// It reads a part that does not fit to its end all the same. Only then does it know where its rows were
// created, so that the parts fit, and the rows are published meanwhile. So a set of n rows takes some 2n/1000
// requests the first time and n/800 from then on. To halve it blindly would take a full page at each level,
// and learn nothing from it of the rest.
func (r *Reader) part(ctx context.Context, set *Set, created Span) (Outcome, []Span, error) {
	p := r.newPass(set, created, r.size)
	if !created.Single() {
		p.known = map[Day]int{}
	}
	if err := p.forward(ctx); err != nil {
		return Outcome{}, nil, err
	}
	o := Outcome{Rows: p.met.len(), Requests: p.answers, Paged: !p.snapshot()}
	switch {
	case p.doubt != "" || p.endless:
		o.Why = p.complaint()
		return o, nil, nil
	case p.snapshot():
		o.Whole = true
		return o, nil, nil
	}
	if parts := divide(created, p.known, r.Page()); len(parts) > 1 {
		return o, parts, nil
	}
	o, err := r.repeat(ctx, p)
	return o, nil, err
}

// repeat reads a part that cannot be cut until it is whole; first is the forward pass that found it too big.
// What makes it whole, and why, stands in the package's comment.
//
// Passes over a shrinking set go backward. Over a growing one they go forward, or backward where rows are
// sorted by updated_at ascending: an updated row then goes to the end, and its followers move down.
func (r *Reader) repeat(ctx context.Context, first *pass) (o Outcome, err error) {
	set := first.set
	l := newLedger(set.Motion)
	l.add(first)
	o = Outcome{Rows: l.rows.n, Requests: first.answers, Paged: true}
	if set.Once {
		o.Whole, o.Why = l.total && l.proven(l.count), "it takes several pages and was read once"
		return o, nil
	}
	for n := 1; n <= maxPasses; n++ {
		p := r.newPass(set, first.created, r.sizeOf(n))
		p.began = first.began
		if set.Motion == Growing && r.order != Ascending {
			err = p.forward(ctx)
		} else {
			err = p.back(ctx, o.Rows/p.size, maxPages)
		}
		if err != nil {
			return o, err
		}
		o.Requests += p.answers
		if p.endless || p.doubt != "" {
			o.Why = p.complaint()
			return o, nil
		}
		metByOneOnly := l.add(p)
		o.Rows = l.rows.n
		if p.snapshot() || r.enough(l, p, n, metByOneOnly) {
			o.Whole = true
			return o, nil
		}
	}
	o.Why = fmt.Sprintf("%d passes over %d rows created %s never showed them all "+
		"(the order changes between requests)", maxPasses, o.Rows, first.created)
	return o, nil
}

// enough tells whether pass n was the last one needed.
func (r *Reader) enough(l *ledger, p *pass, n, metByOneOnly int) bool {
	counted := l.total && l.proven(l.count)
	if l.motion == Growing {
		return p.exact && metByOneOnly == 0 || counted || l.proven(l.pages) || l.hidden() < r.chance
	}
	return l.proven(l.pages) || n > r.steady && (counted || l.hidden() < r.chance)
}

// sizeOf is the page size of pass n: what the service grants, while the order may be stable; then another
// each time, so that the edges of pages lie between other rows.
func (r *Reader) sizeOf(n int) int {
	page := r.Page()
	if n <= r.steady || page < 4 {
		return page
	}
	return page - n*37%(page/2)
}

// Newest reads the end of a growing set where changes appear: page by page, until one has a row that was
// updated before since. It closes nothing. ok is false where the service no longer sorts by updates, or where
// more than limit pages would be needed. Where rows are sorted ascending, it looks for the last page at guess
// first, and returns where it was.
func (r *Reader) Newest(
	ctx context.Context, set Set, since int64, guess, limit int,
) (last int, ok bool, err error) {
	p := r.newPass(&set, set.Created, r.size)
	var a Answer
	step := 1
	if r.order == Ascending {
		// From the last page down: a row that is updated meanwhile leaves its place for the end, and its followers
		// move toward the pages that are read after.
		step = -1
		a, err = p.findLast(ctx, guess, maxPages)
		last = a.page
	} else {
		a, err = p.ask(ctx, 0)
	}
	for ; err == nil; a, err = p.ask(ctx, a.page+step) {
		if r.order == Unknown || p.endless || p.answers > limit {
			return last, false, nil
		}
		if a.oldest() < since || a.page+step < 0 || step > 0 && !a.More {
			return last, true, nil
		}
	}
	return last, false, err
}
