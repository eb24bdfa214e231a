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
	// fewPasses is how many passes in a row may have a contradicted end before we believe that another would
	// not help. After one or two, a row may just have left between the count and the rows.
	fewPasses = 3
	// firstShortTimes is how many first pages in a row have to be short before we believe that all are. If
	// one page in ten is short, that is wrong once in ten thousand times, and costs only requests.
	firstShortTimes = 4
	// maxParts bounds how often one set is cut.
	maxParts = 20_000
	// hiddenChance is how probable it may be that a row was missed where only chance speaks for a set.
	hiddenChance = 1e-9
)

// Reader reads sets of one service. It belongs to one goroutine. What it learns makes reads cheaper, except
// that it decides what a count means (total) and which sets are not cut (undated).
type Reader struct {
	now    func() int64
	onPass func()
	counts Counts
	// What tests set otherwise.
	size, steady int
	chance       float64

	// These are learned, and kept as long as the Reader lives. full is the number of rows of a page that is
	// not the last, zero if no such page was seen. stale is set if an earlier read has found it.
	full  int
	stale bool
	// granted is how many rows a page has by the service's own word.
	granted int
	// short: a page that is not the last had fewer rows than the service says that it grants.
	short bool
	// firstShort is how many times in a row page 0 had fewer rows than that, and was not the last.
	firstShort int
	order      Order
	cuts       cuts
	// total: the service has counted more rows than it was asked for on a page, so it counts all of them.
	total bool
	// perPage: it has counted one row where there were more, and one was asked for.
	perPage bool
	// undated: rows were met that have no day of creation, so parts do not make up a set.
	undated bool
	// noEnd: it says for ever that more pages follow. A page that says otherwise ends that.
	noEnd bool
}

// NewReader returns a Reader. now is the clock that stamps the rows, in the unit of Row.Updated; onPass hears
// of each pass that took several pages; counts is what the service's count is worth.
func NewReader(now func() int64, onPass func(), counts Counts) *Reader {
	return &Reader{now: now, onPass: onPass, counts: counts, size: PageSize, steady: steadyPasses,
		chance: hiddenChance}
}

// Order is how the service was last seen to sort.
func (r *Reader) Order() Order { return r.order }

// NoEnd tells whether the service says for ever that more pages follow.
func (r *Reader) NoEnd() bool { return r.noEnd }

// LearnNoEnd says that it does, as somebody else has found out.
func (r *Reader) LearnNoEnd() { r.noEnd = true }

// LearnCount tells of a count that somebody else was given who asked for so many rows.
func (r *Reader) LearnCount(count, size int) {
	r.total = r.total || r.counts == ExactCounts && count > size
}

// CountsAll tells whether the service is known to count all rows of a set.
func (r *Reader) CountsAll() bool { return r.total }

// FirstPageNeverEnds tells whether sets of any size take several pages, as it seems: page 0 is short, or
// empty, and more follow. To read less at once saves no passes then.
func (r *Reader) FirstPageNeverEnds() bool { return r.firstShort >= firstShortTimes }

// Page is how many rows a full page has.
func (r *Reader) Page() int { return r.page(r.size) }

// page is how many rows a full page has that was asked for with size. Where every page says that more follow,
// that does not show it.
func (r *Reader) page(size int) int {
	full := r.full
	if r.noEnd {
		full = r.granted
	}
	if full > 0 {
		return min(size, full)
	}
	return size
}

func (r *Reader) learn(size int, a Answer) {
	if size == r.size {
		r.granted = a.Size
	}
	short := a.More && len(a.Rows) < min(a.Size, size)
	r.short = r.short || short
	switch {
	case a.page > 0 || size != r.size:
	case short:
		r.firstShort++
	default:
		r.firstShort = 0
	}
	if a.More && size == r.size {
		if r.stale {
			r.full, r.stale = 0, false
		}
		r.full = max(r.full, len(a.Rows))
	}
	if !r.order.fits(a.Rows) {
		r.order = Unknown
	}
	r.LearnCount(a.Count, max(size, len(a.Rows)))
	for _, row := range a.Rows {
		r.undated = r.undated || row.Undated
	}
}

func (r *Reader) learnOrder(f *orderFinder) {
	if by, shown := f.found(); shown {
		r.order = by
	}
}

func (r *Reader) newPass(set *Set, created Span, size int) *pass {
	return &pass{r: r, set: set, created: created, size: size, began: r.now(),
		count: -1, countBefore: -1, greatest: -1, n: -1, said: -1}
}

// Count reads a shrinking set in one backward pass, and says that it is whole if the pass met as many rows as
// there were when it began, and each answer counted as many: some n/1000 requests and one more. It looks for
// the last page at guess first, and gives up behind limit. With limit 0 it reads the set only if it fits one
// page. What is not whole was still read.
func (r *Reader) Count(ctx context.Context, set Set, guess, limit int) (Outcome, error) {
	p := r.newPass(&set, set.Created, r.size)
	if r.noEnd { // the pass begins behind the last page
		guess++
	}
	err := p.back(ctx, guess, limit)
	o := Outcome{Rows: p.met.len(), Requests: p.answers, Paged: p.last > 0}
	switch {
	case err != nil || p.cut || p.doubt != "":
	case o.Rows == p.atMost():
		o.Whole = p.last == 0 || p.ofOneSet(o.Rows)
	case r.noEnd:
		err = r.learnTotal(ctx, p)
		if o.Whole = err == nil && p.doubt == "" && p.counted(); !r.total {
			o.Final, o.Why = true, p.complaint(o.Rows)
		}
	}
	return o, err
}

// Read reads a set in as many parts and passes as it takes.
func (r *Reader) Read(ctx context.Context, set Set) (Outcome, error) {
	todo, expected := []Span{set.Created}, -1
	planned := r.cuts.of(set.Created, set.Like)
	if len(planned) > 1 && !r.undated && (r.total || set.Motion == Growing) {
		todo, expected = planned, 0
	}
	if set.Motion == Shrinking && expected == 0 {
		c, err := r.countOf(ctx, &set, set.Created)
		if err != nil || c.doubt != "" {
			return Outcome{Why: c.doubt}, err
		}
		expected = c.rows
	}
	total, err := r.parts(ctx, &set, todo, &expected)
	if err != nil || !total.Whole || expected < 0 || set.Created != Always {
		return total, err
	}
	if all, err := r.partsSuffice(ctx, &set, expected, total.Rows); err != nil || all {
		return total, err
	}
	o, _, err := r.part(ctx, &set, set.Created, false)
	o.Requests += total.Requests
	return o, err
}

// partsSuffice tells whether the parts of a set, in which so many rows were met, make it up: whether no row
// lacks a day of creation. before is how many a shrinking set had before the parts were read. That many were
// not met where rows have left, too: then it takes three counts.
func (r *Reader) partsSuffice(ctx context.Context, set *Set, before, met int) (bool, error) {
	if !r.total {
		return true, nil // nobody can tell
	}
	if set.Motion == Growing { // rows come: what counts is how many there are now
		c, err := r.countOf(ctx, set, set.Created)
		if err != nil || c.doubt != "" {
			return false, err
		}
		before = c.rows
	}
	if before <= met && !set.Touching {
		return true, nil
	}
	return r.noneUndated(ctx, set)
}

// noneUndated tells whether every row of set has a day of creation: the service counts as many with any such
// day as in all, and none came or went meanwhile.
func (r *Reader) noneUndated(ctx context.Context, set *Set) (bool, error) {
	var n [3]int
	for range fewPasses {
		for i, created := range []Span{dated, Always, dated} {
			c, err := r.countOf(ctx, set, created)
			if err != nil || c.doubt != "" {
				return false, err
			}
			n[i] = c.rows
		}
		if n[0] == n[2] {
			return n[0] == n[1], nil
		}
	}
	return false, nil
}

// parts reads todo, which make up set. expected becomes the number of its rows, as far as the service counts
// them, if the set turns out to need parts.
func (r *Reader) parts(ctx context.Context, set *Set, todo []Span, expected *int) (Outcome, error) {
	total := Outcome{Whole: true}
	var fit []part
	for n := 0; len(todo) > 0; n++ {
		created := todo[0]
		todo = todo[1:]
		if n >= maxParts {
			return Outcome{Why: fmt.Sprintf("it falls into too many parts (more than %d)", maxParts)}, nil
		}
		o, parts, err := r.part(ctx, set, created, true)
		if err != nil {
			return o, err
		}
		if len(parts) > 0 {
			todo = append(parts, todo...)
			total.Paged, total.Requests = true, total.Requests+o.Requests
			if created == set.Created {
				*expected = max(0, o.counted) // before the first of them
			}
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
func (r *Reader) part(ctx context.Context, set *Set, created Span, divisible bool) (Outcome, []Span, error) {
	r.stale = true // the service may grant fewer rows by now, or more
	p := r.newPass(set, created, r.size)
	if divisible && !created.Single() {
		p.known = map[Day]int{}
	}
	if err := p.forward(ctx); err != nil {
		return Outcome{}, nil, err
	}
	o := Outcome{Rows: p.met.len(), Requests: p.answers, Paged: !p.snapshot() && (p.last > 0 || !p.endless),
		counted: p.greatest}
	most := maxPasses
	switch {
	case p.doubt != "" || p.cut:
		o.Why = p.complaint(o.Rows)
		return o, nil, nil
	case p.snapshot():
		o.Whole = true
		return o, nil, nil
	case p.endless: // smaller parts have no end either: they only give rows less time to move
		if err := r.learnTotal(ctx, p); err != nil || p.doubt != "" {
			o.Why = p.doubt
			return o, nil, err
		}
		if most = fewPasses; !r.total {
			o.Final, o.Why = true, p.complaint(o.Rows)
			return o, nil, nil
		}
		again, err := r.repeat(ctx, p, most)
		again.Paged, again.counted = o.Paged, o.counted
		if o = again; err != nil || o.Whole || !o.Paged {
			return o, nil, err
		}
	}
	parts := divide(created, p.known, r.Page())
	if r.FirstPageNeverEnds() && o.Rows <= room(r.Page()) {
		parts = nil // each would take several pages, and as many passes
	}
	if divisible && !r.undated && len(parts) > 1 {
		if err := r.learnTotal(ctx, p); err != nil || p.doubt != "" {
			o.Why = p.doubt
			return o, nil, err
		}
		return o, parts, nil
	}
	if p.endless {
		return o, nil, nil
	}
	o, err := r.repeat(ctx, p, most)
	return o, nil, err
}

// serviceCount is how many rows there are by the service (-1: it does not say), and why that proves nothing.
type serviceCount struct {
	rows  int
	doubt string
}

// countOf asks how many rows were created in a span: for one row of them, because a count above one is that
// of all of them. That there is none it has to say twice.
func (r *Reader) countOf(ctx context.Context, set *Set, created Span) (c serviceCount, err error) {
	a, err := set.Ask(ctx, created, 0, 1)
	if first := a; err == nil && len(a.Rows) == 0 {
		c.doubt = a.Doubt
		a, err = set.Ask(ctx, created, 0, 1)
		a.Count = max(a.Count, first.Count)
	}
	if c.rows = a.Count; r.counts != ExactCounts {
		c.rows = -1
	}
	if c.doubt == "" {
		c.doubt = a.Doubt
	}
	r.LearnCount(c.rows, max(1, len(a.Rows)))
	return c, err
}

// learnTotal finds out whether the count of p's service is that of all rows, as far as p's set shows it.
func (r *Reader) learnTotal(ctx context.Context, p *pass) error {
	if r.total || r.perPage || p.greatest < 1 {
		return nil
	}
	c, err := r.countOf(ctx, p.set, p.created)
	r.perPage = c.rows == 1 && p.met.len() > 1
	if p.doubt == "" {
		p.doubt = c.doubt
	}
	return err
}

// repeat reads a part that cannot be cut until it is whole, in so many passes at most; first is the forward
// pass that found it too big. What makes it whole, and why, stands in the package's comment.
//
// Passes over a shrinking set go backward. Over a growing one they go forward, or backward where rows are
// sorted by updated_at ascending: an updated row then goes to the end, and its followers move down.
func (r *Reader) repeat(ctx context.Context, first *pass, most int) (o Outcome, err error) {
	set := first.set
	o = Outcome{Rows: first.met.len(), Requests: first.answers, Paged: true}
	if o.Whole = set.Motion == Growing && first.endless && first.counted(); o.Whole {
		return o, nil
	}
	l := newLedger(set.Motion)
	l.add(first)
	if set.Once {
		o.Whole, o.Why = r.total && l.shown(l.count), "it takes several pages and was read once"
		return o, nil
	}
	if set.Motion == Shrinking {
		if err := r.learnTotal(ctx, first); err != nil || first.doubt != "" {
			o.Why = first.doubt
			return o, err
		}
	}
	unsound := 0 // so many passes in a row
	page, askedLess := r.Page(), false
	before := first
	for n := 1; n <= most; n++ {
		page, askedLess = r.pageAfter(before, page, askedLess)
		size := r.sizeOf(n, page)
		guess := o.Rows / size
		if r.noEnd {
			guess++
		}
		p := r.newPass(set, first.created, size)
		p.began = first.began
		if set.Motion == Growing && r.order != Ascending {
			err = p.forward(ctx)
		} else {
			err = p.back(ctx, guess, maxPages)
		}
		if err != nil {
			return o, err
		}
		o.Requests += p.answers
		if p.cut || p.doubt != "" {
			o.Why = p.complaint(o.Rows)
			return o, nil
		}
		agree := l.add(p) == 0 && l.sound > 1 && (p.allFull() ||
			p.size != before.size && !p.contradicted(l.rows.n))
		before = p
		o.Rows = l.rows.n
		if p.snapshot() || r.enough(l, p, n, agree) {
			o.Whole = true
			return o, nil
		}
		if unsound++; p.sound() {
			unsound = 0
		}
		if unsound >= fewPasses && (p.exact || unsound > r.steady+fewPasses) || n == most && unsound > 0 {
			o.Why = p.complaint(o.Rows)
			return o, nil
		}
	}
	o.Why = fmt.Sprintf("%d passes over %d rows created %s never showed them all "+
		"(the order changes between requests)", most, o.Rows, first.created)
	return o, nil
}

// pageAfter returns the page size for the pass after before, which asked for page rows. If its pages were
// short, it returns the length of the shortest, but only once in a row (askedLess): pages may be short even
// if fewer rows are asked for.
func (r *Reader) pageAfter(before *pass, page int, askedLess bool) (int, bool) {
	switch {
	case before.allFull():
		return page, false
	case before.shortest > 0 && before.shortest < page && !askedLess:
		return before.shortest, true
	}
	return r.Page(), askedLess
}

// enough reports whether pass n was the last one needed. agree is set if it met the same rows as the pass
// before.
func (r *Reader) enough(l *ledger, p *pass, n int, agree bool) bool {
	counted := r.total && l.shown(l.count)
	chance := p.sound() && !p.contradicted(l.rows.n) && l.hidden() < r.chance
	if l.motion == Growing {
		return agree || chance || counted || l.shown(l.pages)
	}
	return l.shown(l.pages) && (!r.total || l.shown(l.alike)) || counted && (n > r.steady || r.noEnd) ||
		n > r.steady && chance
}

// sizeOf returns the page size of pass n. It is page while the order may be stable. After that it changes
// each time, so that the edges of pages fall between other rows.
func (r *Reader) sizeOf(n, page int) int {
	if n <= r.steady || page < 4 {
		return page
	}
	return page - n*37%(page/2)
}

// Newest reads the end of a growing set where changes appear: page by page, until one has a row that was
// updated before since. It closes nothing. ok is false where the service no longer sorts by updates, where an
// answer proves nothing, or where more than limit pages would be needed. Where rows are sorted ascending, it
// looks for the last page at guess first, and returns where it was.
func (r *Reader) Newest(
	ctx context.Context, set Set, since int64, guess, limit int,
) (last int, ok bool, err error) {
	p := r.newPass(&set, set.Created, r.Page())
	var a Answer
	step := 1
	if r.order == Ascending {
		// From the last page down: a row that is updated meanwhile leaves its place for the end, and its
		// followers move toward the pages that are read after.
		step = -1
		a, err = p.findLast(ctx, guess, maxPages)
		last = a.page
	} else {
		a, err = p.ask(ctx, 0)
	}
	for ; err == nil; a, err = p.ask(ctx, a.page+step) {
		oldest := a.oldest()
		if a.isLast() {
			if err := p.endsWith(ctx, a); err != nil {
				return last, false, err
			}
		}
		places := p.last*p.size + p.end
		if r.order == Unknown || p.uneven || p.cut || p.answers > limit || p.doubt != "" || p.hidden ||
			p.contradicted(places) {
			return last, false, nil
		}
		if oldest < since || a.page+step < 0 || step > 0 && !a.More {
			return last, true, nil
		}
	}
	return last, false, err
}
