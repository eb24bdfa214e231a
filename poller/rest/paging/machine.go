package paging

import (
	"cmp"
	"fmt"
	"iter"
)

// Machine reads one set. It says which page to ask for, takes the facts of the answer, and in the end has an
// Outcome. It sends nothing itself, and knows neither contexts nor errors:
//
//	defer m.Stop()
//	for q, ok := m.Next(); ok; q, ok = m.Next() {
//		m.Answer(a) // the facts of the service's answer to q
//	}
//	outcome := m.Outcome()
//
// Its rules are written as if they could wait for an answer. They run as a coroutine (iter.Pull), which
// stands still while the caller has a question.
type Machine struct {
	r   *Reader
	set Set

	next    func() (Question, bool)
	stop    func()
	yield   func(Question) bool
	stopped bool
	answer  Answer // to the question before
	// narrows is set if smaller pages replace one that failed. failed is set once a page failed. lost is how
	// many places were stepped over, and block is set if one of them had several rows.
	narrows, failed, block bool
	lost                   int

	outcome Outcome
}

// Question is one page to ask for, of the rows of the set that were created in a span.
type Question struct {
	Created    Span
	Page, Size int
}

func (r *Reader) machine(set Set, rules func(*Machine) Outcome) *Machine {
	r.grow()
	set.Today = cmp.Or(set.Today, Future-1)
	m := &Machine{r: r, set: set}
	m.next, m.stop = iter.Pull(func(yield func(Question) bool) {
		defer func() {
			if m.stopped {
				_ = recover() // of ask
			}
		}()
		m.yield = yield
		o := rules(m)
		o.Passes, o.Failed = m.outcome.Passes, m.failed && !o.Whole
		m.outcome = o
	})
	return m
}

// Next returns the next question. It returns false when the reading is over.
func (m *Machine) Next() (Question, bool) { return m.next() }

// Answer gives the Machine the answer to the question that Next returned.
func (m *Machine) Answer(a Answer) { m.answer = a }

// Outcome returns the result of the reading, once Next has returned false. Before that, only Passes is set.
func (m *Machine) Outcome() Outcome { return m.outcome }

// Growing reports whether the set is growing.
func (m *Machine) Growing() bool { return m.set.Growing }

// Stop ends the Machine, if Next has not returned false yet. It may be called more than once.
func (m *Machine) Stop() { m.stop() }

// ask puts a question to the caller, and returns the answer.
func (m *Machine) ask(q Question) Answer {
	if m.stopped = !m.yield(q); m.stopped {
		panic("stopped") // unwinds the rules
	}
	if a := m.answer; a.Failed != "" && !a.Beyond {
		m.failed = true
		m.r.Failed()
		return Answer{Failed: a.Failed, Doubt: cmp.Or(a.Doubt, a.Failed), More: true, Count: -1, Size: -1}
	}
	m.r.calm++
	return m.answer
}

// count is the one pass of Reader.Count.
func (m *Machine) count(guess, limit int) Outcome {
	r, p := m.r, m.newPass(m.set.Created, m.r.Page())
	if r.NoEnd { // the pass begins behind the last page
		guess++
	}
	p.back(guess, limit)
	o := Outcome{Rows: len(p.different()), Requests: p.answers, Paged: p.last > 0}
	switch {
	case p.cut || p.doubt != "":
	case o.Rows == p.atMost():
		o.Whole = p.last == 0 || p.alike == o.Rows
	case r.NoEnd:
		o.Whole = p.counted()
	}
	return o
}

// read reads the set in as many parts and passes as it takes.
func (m *Machine) read() Outcome {
	todo, total := []Span{m.set.Created}, Outcome{Whole: true}
	for n := 1; len(todo) > 0; n++ {
		if n > maxParts {
			return Outcome{Why: fmt.Sprintf("it falls into too many parts (more than %d)", maxParts)}
		}
		size := m.r.size
		o, parts := m.part(todo[0])
		total.Requests += o.Requests
		if m.r.size < size { // the part's pages were too heavy: it is read again
			continue
		}
		todo = append(parts, todo[1:]...)
		total.Paged = total.Paged || o.Paged || len(parts) > 0
		if len(parts) > 0 {
			continue
		}
		total.Rows += o.Rows
		if !o.Whole {
			total.ButRows = o.ButRows && (total.Whole || total.ButRows)
			total.Whole, total.Why = false, cmp.Or(total.Why, o.Why)
		}
		if len(todo) == 0 && n > 1 && total.Whole && m.set.Created == Always && m.mayLackUndated() {
			m.set.Uncut = true
			again, _ := m.part(m.set.Created)
			again.Requests += total.Requests
			return again
		}
	}
	return total
}

// mayLackUndated reports whether a row without a day of creation may have been missed. Counts show it. If the
// service does not count, a row that could not be read may be one.
func (m *Machine) mayLackUndated() bool {
	if m.r.CountsAll {
		return !m.noneUndated()
	}
	return m.lost > 0 && !m.block
}

// noneUndated reports whether every row of the set has a day of creation, so that the parts of the set make
// it up: the service counts as many rows with any such day as in all, and none came or went meanwhile. A row
// of a later day than today counts as one without.
func (m *Machine) noneUndated() bool {
	var n [3]int
	dated := Span{Past, m.set.Today}
	for range fewPasses {
		for i, created := range []Span{dated, Always, dated} {
			rows, doubt := m.countOf(created)
			if doubt != "" {
				return false
			}
			n[i] = rows
		}
		if n[0] == n[2] {
			return n[0] == n[1]
		}
	}
	return false
}

// part reads the part of the set that was created in a span, if it fits one page or cannot be cut. Otherwise
// it returns the parts to read instead.
//
// It reads a part that does not fit to its end all the same. Only then does it know where its rows were
// created, so that the parts fit, and the rows are published meanwhile. So a set of n rows takes some 2n/1000
// requests. To halve it blindly would take a full page at each level, and learn nothing from it of the rest.
func (m *Machine) part(created Span) (Outcome, []Span) {
	r := m.r
	r.stale = true // the service may grant fewer rows by now, or more
	p := m.newPass(created, r.size)
	if !m.set.Uncut && !created.Single() {
		p.known = map[Day]int{}
	}
	p.forward()
	o := Outcome{Rows: len(p.different()), Requests: p.answers,
		Paged: !p.snapshot() && (p.last > 0 || !p.endless)}
	countedOnce := m.set.Once && m.set.Growing && p.sound() && p.counted() // its parts would be a second pass
	if o.Whole = p.doubt == "" && (p.snapshot() || countedOnce); o.Whole {
		return o, nil
	}
	if p.doubt == "" && p.lacks == "" && !p.cut && !r.CountsAll && r.exact && p.greatest > 0 {
		_, p.doubt = m.countOf(created) // it may show that the service counts all rows
	}
	if p.doubt != "" || p.cut || p.endless && (!r.CountsAll || p.lacks != "") {
		o.Why = p.complaint(o.Rows)
		return o, nil
	}
	if p.endless { // smaller parts have no end either: they only give rows less time to move
		again := m.repeat(p, fewPasses)
		again.Paged = o.Paged
		if o = again; o.Whole || !o.Paged {
			return o, nil
		}
	}
	var parts []Span
	// Else parts would have as many pages: the first ones are short, or a row was stepped over.
	if !p.sound() && p.lacks == "" || o.Rows > room(r.Page()) {
		parts = divide(created, p.known, r.Page())
		for n := len(parts) - 1; n > 0 && parts[n].From > m.set.Today; n-- {
			parts[n-1].To = parts[n].To
			parts = parts[:n]
		}
	}
	switch {
	case !r.undated && len(parts) > 1:
		return o, parts
	case p.lacks != "":
		o.Why, o.ButRows = p.complaint(o.Rows), p.exact && !m.block
		return o, nil
	case p.endless:
		return o, nil
	}
	return m.repeat(p, maxPasses), nil
}

// countOf asks how many rows were created in a span: for one row of them, because a count above one is that
// of all of them. It returns -1 if the service does not say. If it says that there is none, it has to say so
// twice. doubt, if not empty, says why the number proves nothing.
func (m *Machine) countOf(created Span) (rows int, doubt string) {
	a := m.ask(Question{Created: created, Size: 1})
	doubt = a.Doubt
	if first := a; len(a.Rows) == 0 {
		a = m.ask(Question{Created: created, Size: 1})
		a.Count, doubt = max(a.Count, first.Count), cmp.Or(doubt, a.Doubt)
	}
	m.r.LearnCount(a.Count, max(1, len(a.Rows)))
	return a.Count, doubt
}

// repeat reads a part that cannot be cut until it is whole, in so many passes at most. first is the forward
// pass that found it too big. The package's comment says what makes the part whole, and why.
//
// Passes over a shrinking set go backward. Over a growing one they go forward, or backward if rows are sorted
// by updated_at ascending: an updated row then goes to the end, and its followers move down.
func (m *Machine) repeat(first *pass, most int) Outcome {
	r, growing := m.r, m.set.Growing
	o := Outcome{Rows: len(first.different()), Requests: first.answers, Paged: true}
	if o.Whole = growing && first.endless && first.counted(); o.Whole {
		return o
	}
	l := newLedger(growing)
	l.enter(first)
	if m.set.Once {
		o.Whole, o.Why = r.CountsAll && l.shown(l.count), "it takes several pages and was read once"
		// More passes would not read the rows that the service counts, or announces, behind the last page.
		if !o.Whole && o.Rows > 0 && (!first.exact && !first.endless || first.contradicted(first.rows)) {
			o.Why, m.failed = first.complaint(o.Rows), true
		}
		return o
	}
	unsound := 0 // so many passes in a row
	page, askedLess := r.Page(), false
	before := first
	for n := 1; n <= most; n++ {
		switch less := before.shortest; {
		case !before.ragged:
			askedLess = false
		case less > 0 && less < page && !askedLess: // only once in a row: then too its pages may be short
			page, askedLess = less, true
		default:
			page = r.Page()
		}
		size := page // the same while the order may be stable
		if n > r.steady && page >= 4 {
			size -= n * 37 % (page / 2) // so that the edges of pages fall between other rows each time
		}
		p := m.newPass(first.created, size)
		switch guess := o.Rows / size; {
		case growing && r.Order != Ascending:
			p.forward()
		case r.NoEnd:
			p.back(guess+1, maxPages)
		default:
			p.back(guess, maxPages)
		}
		o.Requests += p.answers
		if p.cut || p.doubt != "" || p.lacks != "" {
			o.Why = p.complaint(o.Rows)
			return o
		}
		agree := l.enter(p) == 0 && l.sound > 1 && (!p.ragged ||
			p.longest != before.longest && !p.contradicted(len(l.rows)))
		before = p
		o.Rows = len(l.rows)
		if p.snapshot() || r.enough(l, p, n, agree) {
			o.Whole = true
			return o
		}
		if unsound++; p.sound() {
			unsound = 0
		}
		if unsound >= fewPasses && (p.exact || unsound > r.steady+fewPasses) || n == most && unsound > 0 {
			o.Why = p.complaint(o.Rows)
			return o
		}
	}
	o.Why = fmt.Sprintf("%d passes over %d rows created %s never showed them all "+
		"(the order changes between requests)", most, o.Rows, first.created)
	return o
}

// enough reports whether pass n was the last one needed. agree is set if it met the same rows as the pass
// before.
func (r *Reader) enough(l *ledger, p *pass, n int, agree bool) bool {
	counted := r.CountsAll && l.shown(l.count)
	chance := p.sound() && !p.contradicted(len(l.rows)) && l.hidden() < r.chance
	if l.growing {
		return agree || chance || counted || l.shown(l.pages)
	}
	return l.shown(l.pages) && (!r.CountsAll || l.shown(l.alike)) || counted && (n > r.steady || r.NoEnd) ||
		n > r.steady && chance
}

// newest is the search of Reader.Newest. It closes nothing.
func (m *Machine) newest(since int64, guess, limit int) Outcome {
	p := m.newPass(m.set.Created, m.r.Page())
	var a Answer
	var page, step int
	if m.r.Order == Ascending {
		// From the last page down: a row that is updated meanwhile leaves its place for the end, and its
		// followers move toward the pages that are read after.
		a, page = p.findLast(guess, maxPages)
		step = -1
	} else {
		a = p.ask(0)
		step = 1
	}
	for o := (Outcome{Last: page}); ; a = p.ask(page) {
		oldest := a.oldest()
		if a.isLast() {
			p.endsWith(page, a)
		}
		places := p.last*p.size + p.end
		if m.r.Order == Unknown || p.ragged || p.cut || p.answers > limit || p.doubt != "" || p.hidden ||
			p.contradicted(places) {
			return o
		}
		page += step
		if oldest < since || page < 0 || step > 0 && !a.More {
			// A page that is refused though more are said to follow: the newest rows may stand there.
			o.Whole = !a.Beyond && (step > 0 || p.exact || m.r.NoEnd)
			return o
		}
	}
}
