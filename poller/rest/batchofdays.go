package rest

import (
	"math"

	"github.com/storestream/storestream/poller/rest/paging"
)

const (
	// maxDays bounds the days of one window.
	maxDays = 20 * 366
	// maxBatchPages is about how many pages a window of the past may take at most. After each window settled
	// moves, and a load that is cut short goes on from there.
	maxBatchPages = 32
	// heldLong is after how many windows twice as many days as the service granted are tried: again after twice
	// as many windows each time.
	heldLong = 16
)

// batchOfDays plans how many past days the next window has. It begins with one, and the next window has four
// times as many, or twice as many pages, while windows come out whole. If rows move too much, the next one
// has a quarter.
type batchOfDays struct {
	days int // of the next window
	// perDay is how many rows the days of the last window had. Zero if that is unknown.
	perDay float64
	// most is the most days that the service has not refused, zero if it has refused none. held is how many
	// windows came out whole since most was found.
	most, held int
	// counted is set if the window that is being read is whole only if one counted pass shows it. parts is
	// set if the next window, of one day, was not whole like that, and is read in parts.
	counted, parts bool
}

// machine returns the Machine that reads set, the rows of so many days: in one counted pass, if the service
// counts all rows. If that pass does not show all rows of a day, the day is read in parts. So is the newest
// day: its rows move most.
func (b *batchOfDays) machine(r *paging.Reader, set paging.Set, days int, newest bool) *paging.Machine {
	if b.counted = r.CountsAll && !b.parts && !newest; !b.counted {
		return r.Read(set)
	}
	guess := max(0, int(b.perDay*float64(days))-1) / r.Page()
	return r.Count(set, guess, max(maxBatchPages, guess)*5/4+2)
}

// adapt plans the next window after one of so many days. again is set if that window is to be read once
// more, with fewer days: so that one that cannot be read holds up no other.
//
// A service may limit the days of a window, and refuse longer ones. The limit is found by halving. One day is
// refused for another reason, for which longer windows may have been refused, too. So twice the limit is
// tried now and then. refused is set if this window was.
func (b *batchOfDays) adapt(days int, refused bool, o paging.Outcome, r *paging.Reader) (again bool) {
	if refused {
		if b.most > 0 && days > b.most {
			b.days = b.most
			return true
		}
		b.most, b.held = days-1, 0
	}
	if b.parts = false; b.counted && !o.Whole || o.Failed && days > 1 {
		b.days, b.parts = max(1, days/4), days == 1
		return true
	}
	b.perDay = float64(o.Rows) / float64(days)
	// A single page is filled further than a part of a day: the past gains no rows, so only days that differ
	// make it too much. Several pages are twice as many as before, up to the middle of the last one, so that
	// its number is guessed right.
	page, full := float64(r.Page()), 0.95
	if r.CountsAll {
		full = min(2*max(1, math.Ceil(float64(o.Rows)/page)), maxBatchPages) - 0.5
	}
	b.days = max(1, min(4*days, int(min(full*page/b.perDay, maxDays)))) // no row: four times as many
	if b.held++; b.most > 0 {
		if days > b.most { // the limit was another trouble's
			b.most, b.held = days, 0
		}
		most := max(days, (days+b.most+1)/2)
		if b.held >= heldLong && b.held&(b.held-1) == 0 {
			most = 2 * b.most
		}
		b.days = min(b.days, most)
	}
	return false
}
