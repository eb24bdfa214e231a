package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// wholeEvery is how often the open window is read whole although cheap polls would do: they rely on the
// service's order. With the default ceiling a window of 60 000 rows then takes one percent of the
// requests. A window that takes long is read whole less often: at most a tenth of the time.
const wholeEvery = 10 * time.Minute

// openWindow is the result of earlier passes over the open window, the rows updated since the last day that
// is over. It is good only while all rows that they read are published.
type openWindow struct {
	// The last whole read: the first open day, when it began (by our clock; zero before the first one), how
	// long it was busy, how many requests it took, and whether the window took more than a page.
	from     day
	began    time.Time
	took     time.Duration
	requests int
	paged    bool
	// reach is the updated_at to which a cheap poll must get back: any row that became visible since that
	// read is newer.
	reach schemas.Instant
	// last is the window's last page, if rows are sorted ascending.
	last int
	// nextRepeatedRead is when the window is read in passes again, after they did not show all its rows. pause
	// is how long that was after the last try, while requests fail.
	nextRepeatedRead time.Time
	pause            time.Duration
}

// A pass closes the days that are over and reads the open window: everything updated since, without an end,
// so that a row that is updated while midnight passes stays in it. Rows that leave a past day while it is
// read have been updated, so they are in the open window, which is read after.

// planPass finds the days of a pass.
func (s *Source) planPass(ctx context.Context, rd *read) error {
	passed := max(rd.req.From, rd.req.Passed)
	if err := s.calendar.wentBack(passed); err != nil && passed > s.cfg.Start {
		return err
	}
	rd.from, rd.last = s.first(rd, s.calendar.margin), s.calendar.lastOver()
	rd.open = max(rd.from, rd.last+1)
	rd.whole = rd.req.Complete || rd.from == past
	err := rd.findFirst(ctx, updated, s.earliest)
	if err == nil && rd.from == past && rd.next <= rd.last {
		s.earliest = rd.next
	}
	return err
}

// openWindow returns the rows updated since the first open day.
func (s *Source) openWindow(open day) window {
	return s.bounded(on(updated, span{From: s.calendar.begin(open), To: future}))
}

// showToday hands on rows of w, newer ones than those in hand. These need not be all.
func (s *Source) showToday(ctx context.Context, rd *read, w window) error {
	began := time.Now()
	set := rd.set(w, true)
	set.Once = true
	_, err := rd.pages(ctx, s.bounded(w), s.reader.Read(set))
	rd.shown, rd.showing = time.Now(), time.Since(began)
	return err
}

// readOpenWindow reads the open window. It need not be read whole if the pass need not be complete, no day
// could be closed, a whole read is not long ago, and one page would not do. Then one pass over it will do, or
// if the service sorts, a cheap poll.
func (s *Source) readOpenWindow(ctx context.Context, rd *read) error {
	m, busy, open := &s.open, time.Now(), rd.open
	w := s.openWindow(open)
	whole := rd.whole || !m.paged || m.from != open || s.clock.Now().Sub(m.began) >= max(wholeEvery, 10*m.took)
	if !whole && s.reader.Order != paging.Unknown {
		// A cheap poll reads the end of the window where changes appear, back to rows that the last whole read must
		// have met. It is not whole if the service does not sort as it did, or if it would cost as much as to read
		// all.
		set := rd.set(w, true)
		o, err := rd.pages(ctx, w, s.reader.Newest(set, int64(m.reach), m.last, max(3, m.requests/2)))
		if m.last = o.Last; err != nil {
			return err
		}
		if o.Whole {
			return rd.finish(ctx, &poller.Done{Started: rd.req.Started, Delayed: rd.delayed})
		}
		whole = true
	}
	began, reach := s.clock.Now(), s.clock.Service().Add(-s.cfg.Overlap)
	s.cfg.Doing("reading what changed since " + open.String())
	if m.paged && m.from == open && s.calendar.begin(open) != open {
		// A row of the first quarter of an hour shows that the day begins at midnight. Then the day before,
		// which costs pages, need not be read. The first page may have such a row.
		w[updated].From = open
		_, err := rd.pages(ctx, w, s.reader.Count(rd.set(w, true), 0, 0))
		if err != nil {
			return err
		}
	}
	w = s.openWindow(open)
	rd.old = ""
	set := rd.set(w, true)
	set.Once = !whole || busy.Before(m.nextRepeatedRead)
	o, err := rd.pages(ctx, w, s.reader.Read(set))
	if err == nil {
		err = rd.checkEnd(ctx, w, &o)
	}
	if err == nil && o.Failed && w[updated].From < open { // perhaps for the day before
		err = s.showToday(ctx, rd, on(updated, span{From: open, To: future}))
	}
	if err != nil {
		return err
	}
	if rd.firstOpen == open {
		rd.settle(o.Whole)
	}
	done := &poller.Done{Started: rd.req.Started, Complete: o.Whole && rd.delayed == ""}
	if !o.Whole && (whole || o.Failed) {
		rd.delay(fmt.Sprintf("the rows updated since %s could not be read completely: %s", open, o.Why))
		if !o.ButRows { // it may have missed changes of other rows, so it does not count for lag
			done.Started = schemas.MinInstant
		}
	}
	done.Delayed = rd.delayed
	if err := rd.finish(ctx, done); err != nil {
		return err
	}
	took := time.Since(busy)
	switch {
	case o.Whole:
		*m = openWindow{from: open, began: began, took: took, requests: o.Requests, paged: o.Paged, reach: reach,
			last: o.Rows / s.reader.Page(), nextRepeatedRead: m.nextRepeatedRead}
	case !set.Once:
		if pause := max(firstPause, 3*took); o.Failed {
			m.pause = max(pause, min(2*m.pause, wholeEvery))
		} else {
			m.pause = pause
		}
		m.nextRepeatedRead = time.Now().Add(m.pause)
	}
	return nil
}
