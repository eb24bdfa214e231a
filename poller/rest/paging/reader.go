package paging

const (
	// PageSize is how many rows are asked for. It is the most that the service's document allows.
	PageSize = 1000
	// steadyPasses is how many passes over a past day use one page size, because the order may be stable.
	// After them the page size varies, and the service's own count and chance are believed.
	steadyPasses = 8
	// maxPasses bounds the passes over one part of a set. Random order with a few pages takes about ten.
	maxPasses = 60
	// fewPasses is how many passes in a row may have a contradicted end before the reading gives up. After one
	// or two, a row may just have left between the count and the rows.
	fewPasses = 3
	// maxParts bounds how often one set is cut.
	maxParts = 20_000
	// hiddenChance is how probable it may be that a row was missed, if only chance speaks for a set.
	hiddenChance = 1e-9
)

// Reader knows how the sets of one service are best read. Its Machines share their knowledge of the service.
// So only one of them may be in use at a time. That makes reading cheaper, and decides only
// two things: the meaning of a count (CountsAll), and which sets are not cut (undated).
type Reader struct {
	// exact is set if counts are how many rows a set has, or a page: a set is not taken for whole if its last
	// page contradicts them. Else they are estimates, which only show where to look for the last page.
	exact bool
	// The page size, the steady passes and the bound of chance. Tests change them.
	size, steady int
	chance       float64

	// full is the number of rows of a page that is not the last, zero if no such page was seen. If each page
	// says that more follow, it is the number by the service's own word. stale is set while full is from
	// before the part that is being read.
	full  int
	stale bool
	// short is set once a page that is not the last had fewer rows than the service says that it grants.
	short bool
	// Order is how the service was last seen to sort.
	Order Order
	// CountsAll is set once the service has counted more rows than it was asked for on a page. So it counts all
	// rows of a set.
	CountsAll bool
	// NoEnd is set while the service never says that no more pages follow. The caller may find it out, too.
	NoEnd bool
	// undated is set once a row had no day of creation. Then parts do not make up a set.
	undated bool

	// ceiling is the page size to come back to. Zero unless larger pages were too heavy.
	ceiling int
	// calm is how many good answers came since a request failed.
	calm int
}

// NewReader returns a Reader. exact is set if the service's counts are not estimates.
func NewReader(exact bool) *Reader {
	return &Reader{exact: exact, size: PageSize, steady: steadyPasses, chance: hiddenChance,
		calm: calmAnswers}
}

// Read returns a Machine that reads a set in as many parts and passes as it takes.
func (r *Reader) Read(set Set) *Machine {
	return r.machine(set, func(m *Machine) Outcome {
		m.narrows = true
		return m.read()
	})
}

// Count returns a Machine that reads a shrinking set in one backward pass. The set is whole if the pass met
// as many rows as there were when it began, and each answer counted as many. That takes some n/1000 requests
// and one more. The Machine looks for the last page at guess first, and gives up after limit. With limit 0 it
// reads the set only if it fits one page. If the set is not whole, its rows were read all the same.
func (r *Reader) Count(set Set, guess, limit int) *Machine {
	return r.machine(set, func(m *Machine) Outcome { return m.count(guess, limit) })
}

// Newest returns a Machine that reads the end of a growing set where changes appear: page by page, until one
// has a row that was updated before since. Its Outcome is Whole if it came so far. It is not if the service
// no longer sorts by updates, if an answer proves nothing, or if that takes more than limit pages. If rows
// are sorted ascending, the Machine looks for the last page at guess first, and Outcome.Last is its number.
func (r *Reader) Newest(set Set, since int64, guess, limit int) *Machine {
	return r.machine(set, func(m *Machine) Outcome { return m.newest(since, guess, limit) })
}

// LearnCount takes the count of an answer to a request of the caller's own for size rows.
func (r *Reader) LearnCount(count, size int) {
	r.CountsAll = r.CountsAll || r.exact && count > size
}

// Page returns how many rows a full page has.
func (r *Reader) Page() int { return r.page(r.size) }

// page returns how many rows a full page has that was asked for with size.
func (r *Reader) page(size int) int {
	if r.full > 0 {
		return min(size, r.full)
	}
	return size
}

// learn takes the answer to a question for a page of so many rows.
func (r *Reader) learn(size int, a Answer) {
	r.short = r.short || a.More && len(a.Rows) < min(a.Size, size)
	if a.More && size == r.size {
		if r.stale {
			r.full, r.stale = 0, false
		}
		n := len(a.Rows)
		if r.NoEnd { // the last page says that more follow, too
			n = a.Size
		}
		r.full = max(r.full, n)
	}
	if !r.Order.fits(a.Rows) {
		r.Order = Unknown
	}
	r.LearnCount(a.Count, max(size, len(a.Rows)))
	for _, row := range a.Rows {
		r.undated = r.undated || row.Undated
	}
}
