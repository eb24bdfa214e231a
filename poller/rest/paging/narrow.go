package paging

import (
	"cmp"
	"fmt"
)

const (
	// lessBy is by how much smaller the pages are that replace one that failed.
	lessBy = 10
	// mostLost is how many places a reading narrows down to single rows. Behind them it steps over small pages.
	mostLost = 20
	// smallPage is the least page size that a Reader goes down to.
	smallPage = 5
	// calmAnswers is how many good answers in a row it takes until the page size is doubled again, and until a
	// request that fails is tried more than fewTries times.
	calmAnswers = 100
	fewTries    = 2
)

// Failed takes note of a request that got no good answer.
func (r *Reader) Failed() { r.calm = 0 }

// Tries returns how often a request is sent at most. Zero means as often as the caller likes. After a failure
// it is few: the place that failed is likely to fail again.
func (r *Reader) Tries() int {
	if r.calm < calmAnswers || r.ceiling > 0 {
		return fewTries
	}
	return 0
}

// lower makes pages smaller, but no smaller than smallest: larger ones are too heavy for the service, or it
// does not grant them. It reports whether they are.
func (r *Reader) lower(size int) (lowered bool) {
	if size = max(size, r.smallest); size >= r.size {
		return false
	}
	r.ceiling = max(r.ceiling, r.size)
	r.resize(size)
	return true
}

// grow makes pages larger again, between two readings. So one reading comes to its end.
func (r *Reader) grow() {
	if r.ceiling == 0 || r.calm < calmAnswers {
		return
	}
	r.calm = 0
	r.resize(min(2*r.size, r.ceiling))
	if r.size == r.ceiling {
		r.ceiling = 0
	}
}

func (r *Reader) resize(size int) { r.size, r.full, r.stale = size, 0, false }

// fetch asks for a page. If that fails, it asks for the page's places by smaller pages, down to single rows.
// Then the answer has the rows of these pages, and Failed. See "Failures" in the package's comment.
func (p *pass) fetch(page int) Answer {
	a := p.look(page, p.size)
	if a.Failed == "" || a.Beyond {
		return a
	}
	if !p.m.narrows {
		p.cut = true
		return a
	}
	full, lost := p.r.page(p.size), p.m.lost
	p.least = full
	isRow := full <= lessBy || p.anyAnswers(page*full, (page+1)*full)
	b := Answer{More: true, Count: -1, Size: -1}
	if isRow {
		b = p.places(page*full, (page+1)*full)
	}
	b.Failed = a.Failed
	switch {
	case p.granted > 0 && p.r.lower(p.granted): // the smaller pages were at other places
		p.cut, b.Doubt = true, a.Failed
	case isRow && p.m.lost == lost: // the page was too heavy
		p.cut, b.Doubt = p.r.lower(p.least), a.Failed
	case isRow:
	case page > 0: // the service shows no more pages
		p.lacks, b.Beyond = cmp.Or(p.lacks, a.Failed), true
	default:
		p.cut, b.Doubt = true, a.Failed
	}
	return b
}

// anyAnswers reports whether the service answers for a row at one of three places: the first of a page, the
// middle one and the last. If not, the fault is not in a row.
func (p *pass) anyAnswers(from, to int) bool {
	for _, place := range []int{from, (from + to) / 2, to - 1} {
		p.answers++
		if a := p.get(place, 1); a.Failed == "" || a.Beyond {
			return true
		}
	}
	return false
}

// places asks for the rows at the places from `from` to before `to` by smaller pages, because one page of
// them failed. It steps over places that fail alone, and if many have failed, over small pages.
func (p *pass) places(from, to int) Answer {
	all := Answer{More: true, Count: -1, Size: -1}
	size := max(1, (to-from)/lessBy)
	p.least = min(p.least, size)
	for page := from / size; page*size < to && all.More; page++ {
		p.answers++
		a := p.look(page, size)
		first, end := page*size, (page+1)*size
		switch {
		case a.Beyond: // rows have left, or pages of such numbers are not shown
			all.Beyond, p.m.block = from > 0, true
			return all
		case a.Failed == "":
			p.r.learn(size, a)
			if n := len(a.Rows); a.More && n > 0 && n < size {
				p.granted = n
			}
		case size > 1 && p.m.lost < mostLost && (size <= lessBy || p.anyAnswers(first, end)):
			a = p.places(first, end)
		default:
			p.stepOver(first, end, a.Failed)
			a = Answer{More: true, Count: -1}
		}
		all.Rows = append(all.Rows, a.Rows...)
		all.More, all.Beyond, all.Count = a.More, a.Beyond, max(all.Count, a.Count)
		if all.Doubt = cmp.Or(all.Doubt, a.Doubt); a.Beyond {
			return all
		}
	}
	return all
}

// stepOver notes that the rows at some places cannot be read.
func (p *pass) stepOver(from, to int, failed string) {
	p.m.lost++
	what := fmt.Sprintf("the row at place %d", from)
	if to-from > 1 {
		p.m.block = true
		what = fmt.Sprintf("a row at the places %d to %d", from, to-1)
	}
	p.lacks = cmp.Or(p.lacks, what+" cannot be read: "+failed)
}
