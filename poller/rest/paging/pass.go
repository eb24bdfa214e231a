package paging

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	// maxIdle is how many pages in a row may bring no row that the pass has not met. After them, "more
	// follows" is taken to have no end. knownIdle is the same for a service that is known for it.
	maxIdle   = 10
	knownIdle = 2
	// maxPages bounds one pass.
	maxPages = 50_000
)

// pass is one traversal of the pages of a set, or of a part of it. Of an answer it keeps the sums that
// the rules ask for, and the ids of its rows.
type pass struct {
	m       *Machine
	r       *Reader
	created Span
	size    int // asked for, in every request: a page's number means nothing otherwise

	// The number of answers so far. The newest count, the one before it and the greatest (-1 if no answer has
	// counted).
	answers                      int
	count, countBefore, greatest int
	// longest is the most rows of a page. shortest is the fewest rows of a page that has some and is not the
	// last, zero if there is no such page.
	longest, shortest int
	// ragged is set if a page that is not the last had fewer or more rows than were asked for.
	ragged bool
	order  orderFinder
	known  map[Day]int // how many rows were created on each day. Nil if that is not needed
	// idlePages is how many answers in a row said that more follow, and were empty or repeated the rows of a
	// page before. seen has the sums of pages, which tell them apart.
	idlePages int
	seen      map[uint64]bool

	// Of the pass itself, which in a backward one begins with the last page: before that it looked for it.
	met     []uint64        // the ids of its rows, as they came
	changed map[uint64]bool // those of rows that had changed since the beginning
	rows    int             // how many came, met before or not
	before  int             // how many different rows were met maxIdle answers before idle looks
	// alike is the count that each answer with rows gave, -1 if they differ or do not count.
	alike int
	// n is how many rows the service counted before it showed the first of met, -1 if it did not count.
	n int
	// last is the number of the last page. end is the number of its rows, and said the service's total count
	// with it. exact is set if the service itself said that this page is the last.
	last, end, said int
	exact           bool
	backward        bool
	endless         bool // the service never says that no more follow
	cut             bool // more pages than may be read
	hidden          bool // see endsWith
	doubt           string
	// lacks says which places the pass stepped over, and refused how the service refused a page.
	lacks, refused string
	// least is the size of the smallest page that fetch asked for. granted is the length of one that was shorter
	// than that although more followed, zero if there was none.
	least, granted int
}

func (m *Machine) newPass(created Span, size int) *pass {
	return &pass{m: m, r: m.r, created: created, size: size,
		seen: map[uint64]bool{}, changed: map[uint64]bool{},
		count: -1, countBefore: -1, greatest: -1, n: -1, said: -1}
}

// ask asks for a page and enters the answer.
//
// Two answers prove something only if a second one says the same. One is an empty page 0: a service that has
// just lost its tables, or a gateway without an answer of its own, answers like this too. The other, of a
// shrinking set, is a last page that is full or may be a short one: if the service reads rows and counts
// afterwards, a row may have left in between, and the page shows it in place of one that has moved up. The
// rows of the second answer were read after the first one had said that there are no more than so many. So
// anything that speaks against the first one speaks against both.
func (p *pass) ask(page int) Answer {
	a := p.fetch(page)
	before := ""
	for range 3 {
		first, says := a, p.says(a, page)
		if says == "" || says == before {
			break
		}
		before = says
		a = p.fetch(page)
		a.Count, a.Doubt = max(a.Count, first.Count), cmp.Or(a.Doubt, first.Doubt)
	}
	p.enter(a)
	if a.isLast() && len(a.Rows) > 0 {
		p.r.NoEnd = false
	}
	return a
}

// says returns the meaning of a single answer for the end of a set, "" if it needs no second one.
func (p *pass) says(a Answer, page int) string {
	switch {
	case !a.isLast() || a.Failed != "":
	case page == 0 && len(a.Rows) == 0:
		return "there are no rows" // it may have none for another reason
	case a.Unsure: // look has asked for it again
	case !p.m.set.Growing && len(a.Rows) > 0 && (p.isFull(a) || p.r.short || p.backward && page > 0):
		return "no more follow" // it may show a row that has left
	}
	return ""
}

// look asks for a page. If the answer does not say whether more follow, look asks for the page behind it. If
// that has nothing, look asks for the first one again: its rows are then read after that was known, and it is
// the last page.
func (p *pass) look(page, size int) Answer {
	a := p.get(page, size)
	if !a.Unsure {
		return a
	}
	a.Rows = slices.Clone(a.Rows)
	next := p.get(page+1, size)
	if next.More || len(next.Rows) > 0 {
		a.More, a.Unsure = true, false
		return a
	}
	again := p.get(page, size)
	again.Count, again.Doubt = max(again.Count, a.Count), cmp.Or(again.Doubt, a.Doubt, next.Doubt)
	return again
}

func (p *pass) get(page, size int) Answer {
	return p.m.ask(Question{Created: p.created, Page: page, Size: size})
}

// isFull reports whether a has as many rows as a page has, or may have: the service may grant less than was
// asked for without saying it, and may not have shown a page yet that is not the last.
func (p *pass) isFull(a Answer) bool {
	full := p.r.page(p.size)
	switch {
	case a.Size > 0:
		full = min(full, a.Size)
	case p.r.full == 0:
		full = 1
	}
	if p.shortest > 0 {
		full = min(full, p.shortest)
	}
	return len(a.Rows) >= full
}

// enter takes what an answer shows into the sums of the pass.
func (p *pass) enter(a Answer) {
	p.answers++
	if a.Count >= 0 {
		p.countBefore, p.count, p.greatest = p.count, a.Count, max(p.greatest, a.Count)
	}
	if a.Failed == "" {
		p.r.learn(p.size, a)
	} else if a.Beyond {
		p.refused = a.Failed
	}
	p.meet(a)
	p.order.see(a.Rows)
	p.doubt = cmp.Or(p.doubt, a.Doubt)
	n, sum := len(a.Rows), uint64(0) // the sum is the same for the same rows in any order
	for _, row := range a.Rows {
		mixed := (row.ID ^ row.ID>>29) * 0x9E3779B97F4A7C15
		sum += mixed ^ mixed>>32
		if p.known != nil && row.Created != Past {
			p.known[row.Created]++
		}
	}
	p.longest = max(p.longest, n)
	if a.More {
		p.ragged = p.ragged || n != p.size
		if n > 0 && (p.shortest == 0 || n < p.shortest) {
			p.shortest = n
		}
	}
	if p.idlePages++; !a.More || n > 0 && !p.seen[sum] {
		p.idlePages = 0
	}
	p.seen[sum] = true
}

func (p *pass) meet(a Answer) {
	switch {
	case !p.r.exact || p.rows > 0 && len(a.Rows) > 0 && a.Count != p.alike:
		p.alike = -1
	case p.rows == 0:
		p.alike = a.Count
	}
	p.rows += len(a.Rows)
	for _, row := range a.Rows {
		p.met = append(p.met, row.ID)
		if p.m.set.Growing && row.Updated >= p.m.set.Began {
			p.changed[row.ID] = true // which is not taken back
		}
	}
}

// different returns the ids met so far, each once and in order.
func (p *pass) different() []uint64 {
	slices.Sort(p.met)
	p.met = slices.Compact(p.met)
	return p.met
}

// endsWith records that the last page is a, or stood before it. Its rows are gone then.
//
// A service may show only so many pages of a set, and say of the last that nothing follows. That page is
// full then, and unless the count contradicts it, only this gives it away. So the end of its rows is asked
// for with pages of a row less: of page+1 full pages, the last page+1 rows stand on page number page+1.
// hidden: they do not. If page 0 is the last of a set that gains no rows, more than one row there shows that
// others are hidden.
func (p *pass) endsWith(page int, a Answer) {
	p.last, p.end, p.said, p.exact, p.hidden = page, len(a.Rows), a.Count, a.isLast(), false
	if size := p.end - 1; p.exact && p.isFull(a) && !p.r.CountsAll && page+1 < size {
		b := p.get(page+1, size)
		p.hidden = len(b.Rows) == 0 && (!b.More || b.Failed != "") || // an empty page in the middle says more
			page == 0 && !p.m.set.Growing && len(b.Rows) > 1
	}
}

// countPass counts a pass over several pages.
func (p *pass) countPass() {
	if p.answers > 1 {
		p.m.outcome.Passes++
	}
}

// forward reads from page 0 until no more pages follow. A short or empty page is not the end. If the service
// refuses a page although it said at the one before that more follow, rows have left meanwhile, or it shows
// no more pages than these.
func (p *pass) forward() {
	defer p.countPass()
	for page := 0; ; page++ {
		a := p.ask(page)
		switch {
		case p.cut:
			return
		case a.Beyond:
			p.last = page - 1
			return
		case !a.More:
			p.r.Order = p.order.found(p.r.Order)
			p.endsWith(page, a)
			return
		case p.answers > maxPages:
			p.cut = true
			return
		case p.idle():
			p.last = max(0, page-p.idlePages)
			p.r.Order = p.order.found(p.r.Order)
			return
		}
	}
}

// idle reports whether the last answers brought only pages that the pass had met, or only rows. If a row
// moves to the page that comes again between every two answers, each answer differs from the others. So idle
// looks for new rows as well, at ever longer intervals: it has to sort the rows met. It waits until as many
// rows came as the service counts.
func (p *pass) idle() bool {
	powerOfTwo := func(n int) bool { return n&(n-1) == 0 }
	most := maxIdle
	if p.r.NoEnd {
		most = knownIdle
	}
	switch {
	case p.idlePages >= most:
		p.endless = true
	case p.r.CountsAll && p.rows < p.greatest: // more rows than came
	case powerOfTwo(p.answers + maxIdle):
		p.before = len(p.different())
	case p.answers > maxIdle && powerOfTwo(p.answers):
		p.endless = len(p.different()) == p.before
	}
	p.r.NoEnd = p.r.NoEnd || p.endless
	return p.endless
}

// findLast asks for the last page, first at guess. It gives up after limit (cut). The service's count only
// shortens the search: it makes one jump, and if that goes past the end, the search goes on from the page
// before the jump. If the service's pages have no end, any page behind the last will do.
func (p *pass) findLast(guess, limit int) (a Answer, page int) {
	if p.r.NoEnd {
		limit += knownIdle
	}
	low, jumped := -1, false // low is the highest page that more are known to follow
	for page = guess; ; {
		a = p.ask(page)
		next, hint := page+1, (a.Count-1)/p.r.page(p.size)
		past := a.Beyond || !a.More
		if p.r.NoEnd && !past {
			hint++
			past = len(a.Rows) == 0
		}
		switch {
		case p.cut:
			return a, page
		case a.isLast() && (page == 0 || len(a.Rows) > 0):
			return a, page
		case past && low >= 0 && !p.r.NoEnd:
			if next = low + 1; next == page {
				return a, page // rows have left: the pass begins with the first page below that has some
			}
		case past:
			if jumped || a.Count <= 0 || hint >= page-1 {
				return a, page
			}
			next, jumped = hint, true
		case p.answers > maxPages || next > limit:
			p.cut = true
			return a, page
		case p.idle():
			return a, page
		default:
			low = page
			if !jumped && hint > next && hint <= limit {
				next, jumped = hint, true
			}
		}
		page = next
	}
}

// back reads from the last page, for which it looks from guess to limit, to page 0. Each page that says that
// it is the last starts the pass again: the pages above it were read, but are no part of the pass.
func (p *pass) back(guess, limit int) {
	defer p.countPass()
	p.backward = true
	a, page := p.findLast(guess, limit)
	for begins := true; !p.cut; begins = a.Beyond || !a.More {
		if begins {
			p.met, p.rows = nil, 0
			clear(p.changed)
			p.meet(a)
			if p.n = p.countBefore; len(a.Rows) == 0 {
				p.n = p.count
			}
			p.endsWith(page, a)
		}
		if page == 0 {
			return
		}
		page--
		a = p.ask(page)
	}
}

// sound reports whether the service itself named the last page, and no fact speaks against it.
func (p *pass) sound() bool {
	return p.exact && !p.hidden && p.lacks == "" && !p.contradicted(p.rows)
}

// contradicted reports whether the service, with the page that it calls the last, counted more rows than have
// places on it and on the pages below. A pass has seen how many these have: pages may be short.
func (p *pass) contradicted(places int) bool {
	return p.exact && p.r.exact && p.atLeast() > places
}

// atLeast is how many rows the set had by the service's count when the last page was read. A growing set has
// no fewer than any answer counted before: that page may come from a replica that lags behind, or say that
// there is nothing because it has nothing to say.
func (p *pass) atLeast() int {
	if p.m.set.Growing {
		return p.greatest
	}
	return p.said
}

// snapshot reports whether the set has come to fit one page, which holds all of it at one instant.
func (p *pass) snapshot() bool { return p.sound() && p.last == 0 }

// atMost returns how many rows the set can have had at most when its last page was read, or -1 if the pass
// does not show it. It counts each page below the last with the number of rows that were asked for. The
// length of these pages would be wrong, and so would the size that the service says it grants: both may
// change between two answers. Suppose that a last page 2 was read while four rows were granted, so it is
// behind eight rows. If two are granted from then on, the pages below have four together, and each of them
// looks full.
func (p *pass) atMost() int {
	switch {
	case !p.sound():
		return -1
	case p.last == 0:
		return p.end
	case p.end == 0, p.longest > p.size: // an empty one contradicts the page below it
		return -1
	}
	return p.last*p.size + p.end
}

// ofOneSet returns n if all rows that were met were in one set, of so many: S(t) at another t is larger or
// smaller. So the instants of the answers do not matter. Otherwise it returns -1.
func (p *pass) ofOneSet() int {
	if p.alike == p.n {
		return p.n
	}
	return -1
}

// counted reports whether as many rows were met as the service counted: before it showed the first of a
// shrinking set, and with each; and after it showed the last of a growing one.
func (p *pass) counted() bool {
	n := p.ofOneSet()
	if p.m.set.Growing {
		n = p.greatest
	}
	return p.r.CountsAll && n == len(p.different())
}

// complaint returns why the pass did not show that the set was read whole. rows is how many were met.
func (p *pass) complaint(rows int) string {
	end, counts := fmt.Sprintf("the service says that nothing follows page %d,", p.last), ", and counts nothing"
	switch {
	case p.doubt != "":
		return p.doubt
	case p.lacks != "":
		return p.lacks
	case p.cut:
		return fmt.Sprintf("it has more pages than one pass reads (%d)", maxPages)
	case p.endless || p.r.NoEnd:
		end = "the service says for ever that more pages follow, and shows nothing new"
	case !p.exact:
		end = "the service says that more pages follow, and has none"
		if p.refused != "" {
			end += " (" + p.refused + ")"
		}
	}
	if p.r.CountsAll || p.contradicted(p.rows) {
		counts = fmt.Sprintf(", and counts %d. If that is only an estimate, set store.dialect.count to estimate",
			max(p.n, p.greatest))
	}
	return fmt.Sprintf("%s after %d rows%s", end, rows, counts)
}
