package rest

import (
	"context"
	"fmt"

	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// maxStretch bounds the days of one window.
const maxStretch = 20 * 366

// closeDays closes the days from..last that can be closed, in order, and lets settled follow.
//
// A day that does not come clean holds settled, not the days behind it: they are closed too and remembered, and when that day comes clean
// settled passes them all at once. A first load begins with the window of everything up to the earliest day. Where there is no row at all nothing is settled:
// an empty service may be one that is just being filled.
func (rd *read) closeDays(ctx context.Context, from, last day) error {
	next := from
	if from == past {
		until := func(d day) window { return window{updated: span{past, d}, created: always} }
		rd.Doing("looking for the earliest row")
		first, found, err := rd.earliest(ctx, until, last)
		if err != nil || !found {
			return err
		}
		next = first
	}
	settled := next // the days before it are closed
	for next <= last {
		if rd.memory.done[next] {
			next = rd.settle(&settled, next, next)
			continue
		}
		if why, waiting := rd.waiting(next); waiting {
			rd.because(why)
			next++
			continue
		}
		days := span{next, min(next+day(rd.stretch)-1, rd.freeUntil(next, last))}
		w := window{updated: days, created: always}
		if from == past && next == settled && rd.closed == schemas.MinInstant {
			w.updated.from = past
		}
		rd.closing("closing " + days.bare())
		o, err := rd.window(ctx, w, days, last)
		if err != nil {
			return err
		}
		rd.adapt(days, o)
		if !o.overflow {
			rd.settled = rd.closed
		}
		switch {
		case o.overflow: // fewer days next time
		case o.whole:
			next = rd.settle(&settled, days.from, days.to)
		default:
			rd.unclosed(days, o)
			next = days.to + 1
		}
		if err := rd.flushIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// closing says what is read, and while a stretch is, how much of it is left: settled does not move meanwhile.
func (rd *read) closing(what string) {
	rd.Doing(what)
	rd.reader.left = func(pages int) { rd.Doing(fmt.Sprintf("%s, %d pages left", what, pages)) }
}

// window reads a window of the past: one of several days only if that is done in one page, or in one pass; otherwise it is cut into fewer days first. last
// is the newest day that may be read so. It is read by itself: its rows move most, and where it has to be cut is known from when it was open.
func (rd *read) window(ctx context.Context, w window, days span, last day) (outcome, error) {
	switch {
	case rd.pages > 1 && !(days.single() && days.to == last):
		guess := max(0, int(rd.density*float64(days.length()))-1) / rd.reader.pageOf(pageSize)
		return rd.reader.stretch(ctx, w, guess, max(2*rd.pages, guess*5/4)+2)
	case days.length() > 1:
		return rd.reader.glance(ctx, w, shrinking)
	default:
		return rd.reader.read(ctx, w, shrinking)
	}
}

// adapt chooses how many days the next window has. It begins with one page and doubles while windows come whole; one that does not halves it, and
// from there it grows by a page at a time.
func (rd *read) adapt(days span, o outcome) {
	n, page := days.length(), rd.reader.pageOf(pageSize)
	if o.overflow {
		rd.most = max(1, rd.pages/2)
		if rd.pages = rd.most; n == 1 { // there are no fewer days: it is to be cut by the days on which its rows were created
			rd.pages = 1
		}
		rd.stretch = max(1, min(n-1, n*3/4))
		if rd.density > 0 && rd.pages > 1 {
			rd.stretch = min(rd.stretch, rd.daysOf(float64(rd.pages)-0.5, page))
		}
		return
	}
	rd.density = float64(o.rows) / float64(n)
	rd.most = min(rd.most+1, widest)
	if o.whole {
		rd.pages = min(2*rd.pages, rd.most)
	}
	wanted := 4 * n
	switch {
	case rd.density == 0:
	case rd.pages == 1:
		// Nearer to the page's end than a planned piece: to the past no rows come, so only days that differ make it too much, and that costs one
		// request.
		wanted = min(wanted, rd.daysOf(0.95, page))
	default: // to the middle of its last page, so that this page is guessed right
		wanted = min(wanted, rd.daysOf(float64(rd.pages)-0.5, page))
	}
	rd.stretch = min(max(1, wanted), maxStretch)
}

// daysOf is how many days fill so many pages.
func (rd *read) daysOf(pages float64, page int) int {
	return int(min(pages*float64(page)/rd.density, maxStretch))
}

// freeUntil is the last day from d to last before the next one that is closed or waits.
func (rd *read) freeUntil(d, last day) day {
	if len(rd.memory.done) == 0 && len(rd.hard) == 0 {
		return last
	}
	for ; d < last; d++ {
		if _, waiting := rd.waiting(d + 1); waiting || rd.memory.done[d+1] {
			return d
		}
	}
	return last
}

// settle notes that the days from..to are closed, and moves closed over all days closed without a gap. It returns the day after.
func (rd *read) settle(settled *day, from, to day) day {
	for d := from; d <= to; d++ {
		rd.memory.done[d] = true
		delete(rd.hard, d)
	}
	for rd.memory.done[*settled] {
		delete(rd.memory.done, *settled)
		*settled++
		rd.closed = rd.settledAfter(*settled - 1)
	}
	return to + 1
}

// unclosed notes days that could not be closed. One with a spoiled page is tried again with the next read: it ends with an error anyway.
func (rd *read) unclosed(days span, o outcome) {
	why := fmt.Sprintf("%s cannot be closed: %s", days.from, o.why)
	rd.because(why)
	if rd.spoiled == nil {
		for d := days.from; d <= days.to; d++ {
			rd.hold(d, why)
		}
	}
	rd.Log.Warn("a day cannot be closed yet; later days go on", zap.Stringer("day", days.from), zap.String("why", o.why))
}
