package rest

import "github.com/storestream/storestream/poller/rest/paging"

const (
	// maxDays bounds the days of one window.
	maxDays = 20 * 366
	// maxBatchPages is about how many pages a window of the past may take at most. After each window settled
	// moves, and a load that is cut short goes on from there.
	maxBatchPages = 32
)

// batchOfDays plans how many past days the next window has. It begins with what fits one page and doubles
// while windows come out whole. Where rows move too much, it halves, and from there on it grows by a page at
// a time.
type batchOfDays struct {
	days  int // of the next window
	pages int // that it may take
	most  int // to which pages may grow for now
	// perDay is how many rows the days of the last window had.
	perDay float64
}

func newBatchOfDays() batchOfDays { return batchOfDays{days: 1, pages: 1, most: maxBatchPages} }

// machine returns the Machine that reads set, the rows of so many days. If it is counted, the days are whole
// only if one page or one counted pass shows them all. Otherwise it reads them in parts. A day that is alone
// is always read in parts: it is the newest, so its rows move most, and its cuts are known from when it was
// open.
func (b *batchOfDays) machine(
	r *paging.Reader, set paging.Set, days int, alone bool,
) (m *paging.Machine, counted bool) {
	switch {
	case b.pages > 1 && !alone && r.CountsAll():
		guess := max(0, int(b.perDay*float64(days))-1) / r.Page()
		return r.Count(set, guess, max(2*b.pages, guess*5/4)+2), true
	case days > 1 && !r.FirstPageNeverEnds(): // else fewer days fare no better, and take as many passes each
		return r.Count(set, 0, 0), true
	}
	return r.Read(set), false
}

// adapt plans the next window after one of so many days. again is set if it is to be read once more, with
// fewer days or in parts.
func (b *batchOfDays) adapt(days int, o paging.Outcome, again bool, page float64) {
	wanted := 4 * days
	if again {
		b.most = max(1, b.pages/2)
		b.pages = b.most
		if days == 1 { // there are no fewer: it is to be read in parts
			b.pages = 1
		}
		wanted = min(days-1, days*3/4)
	} else {
		b.perDay = float64(o.Rows) / float64(days)
		b.most = min(b.most+1, maxBatchPages)
		if o.Whole {
			b.pages = min(2*b.pages, b.most)
		}
	}
	if b.perDay > 0 {
		// To the middle of the last page, so that this page is guessed right. One page is filled further than a
		// part of a day: the past gains no rows, so only days that differ make it too much, and that costs one
		// request.
		full := float64(b.pages) - 0.5
		if b.pages == 1 {
			full = 0.95
		}
		wanted = min(wanted, int(min(full*page/b.perDay, maxDays)))
	}
	b.days = min(max(1, wanted), maxDays)
}
