package rest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// wholeEvery is how often the open window is read whole although cheap polls would do: they rely on the
// service's order. With the default ceiling a window of 60 000 rows then takes one percent of the
// requests. A window that takes long is read whole less often: at most a tenth of the time.
const wholeEvery = 10 * time.Minute

// unsortedFor is how long there are no cheap polls after one has missed a change.
const unsortedFor = 24 * time.Hour

// openWindow is the result of earlier passes over the open window, the rows updated since the last day that
// is over. It is good only while all rows that they read are published.
type openWindow struct {
	// The last whole read: the first open day, the day from which rows were read, when it began (by our
	// clock), how long it was busy, how many requests it took, and whether the window took more than a page.
	// known is false before the first one.
	known    bool
	from     day
	since    day
	began    time.Time
	took     time.Duration
	requests int
	paged    bool
	// reach is the updated_at to which a cheap poll must get back: any row that became visible since that read
	// is newer.
	reach schemas.Instant
	// last is the window's last page, if rows are sorted ascending.
	last int
	// cheap are the last two cheap polls since that read, the newest first.
	cheap [2]cheapPoll
	// nextRepeatedRead is when the window is read in passes again, after they did not show all its rows.
	nextRepeatedRead time.Time
}

// cheapPoll is the rows that a cheap poll met. If it missed a change that was visible, the service does not
// sort by updates.
type cheapPoll struct {
	until schemas.Instant // it must have met every row updated from openWindow.reach until then
	rows  []uint64        // versions of rows, sorted
}

// see records a row of the poll, if it was updated at reach or later.
func (p *cheapPoll) see(row paging.Row, reach schemas.Instant) {
	if schemas.Instant(row.Updated) >= reach {
		p.rows = append(p.rows, version(row))
	}
}

func (p *cheapPoll) met(row paging.Row) bool {
	_, ok := slices.BinarySearch(p.rows, version(row))
	return ok
}

// version of a row: two that have the same by chance count as one, which hides one missed change.
func version(row paging.Row) uint64 { return row.ID*0x9e3779b97f4a7c15 ^ uint64(row.Updated) }

// missed reports whether row was changed when both cheap polls could see it, and neither met it. It takes
// two of them, because one alone may miss a row when another one is deleted.
func (m *openWindow) missed(row paging.Row) bool {
	at := schemas.Instant(row.Updated)
	return m.cheap[1].until > at && at >= m.reach && !m.cheap[0].met(row) && !m.cheap[1].met(row)
}

// manner is how the open window is read.
type manner int

const (
	wholly  manner = iota
	once           // in one pass, even if that does not show that it skipped no row
	cheaply        // only the end where changes appear
)

// pass closes the days that are over and reads the open window: everything updated since, without an end, so
// that a row that is updated while midnight passes stays in it. Rows that leave a past day while it is read
// have been updated, so they are in the open window, which is read after.
func (s *Source) pass(ctx context.Context, rd *read) error {
	if err := s.calendar.wentBack(rd.req.From); err != nil && rd.req.From > s.cfg.Start {
		return err
	}
	began, reach := s.clock.Now(), s.clock.Service().Add(-s.cfg.Overlap)
	from := s.calendar.firstDay(max(rd.req.From, s.cfg.Start))
	last := s.calendar.lastOver()
	open := max(from, last+1)
	c := &closing{rd: rd, src: s, earned: schemas.MinInstant}
	c.report(from, last)
	how := s.manner(c, from, last, open)
	if how == cheaply {
		ok, err := s.newest(ctx, rd)
		if err != nil || rd.replan {
			return err
		}
		if ok {
			return rd.finish(&poller.Done{Started: rd.req.Started, Delayed: c.delays()})
		}
	}
	if err := c.run(ctx, from, last); err != nil || rd.replan {
		return err
	}
	busy := time.Now()
	if s.clock.Now().Before(s.unsorted) {
		s.cfg.Doing("reading all that changed since " + open.String() + ": a change showed outside of the order")
	} else {
		s.cfg.Doing("reading what changed since " + open.String())
	}
	if err := s.lookForMidnight(ctx, rd, open); err != nil || rd.replan {
		return err
	}
	w := window{updated: span{From: s.calendar.begin(open), To: future}, created: always}
	rd.old = ""
	set := rd.set(w, paging.Growing)
	set.Like, set.Once = w.updated.From, how == once || busy.Before(s.open.nextRepeatedRead)
	o, err := rd.pages(ctx, w, s.reader.Read(set), "")
	if err != nil || rd.replan {
		return err
	}
	rd.settled = c.earned
	if !o.Whole && how != once {
		c.explain(fmt.Sprintf("the rows updated since %s could not be read completely: %s", open, o.Why))
	}
	done := &poller.Done{Started: rd.req.Started, Complete: o.Whole && len(c.why) == 0, Delayed: c.delays()}
	if err := rd.finish(done); err != nil {
		return err
	}
	took := time.Since(busy)
	switch m := &s.open; {
	case o.Whole:
		m.known, m.from, m.since, m.began, m.took = true, open, w.updated.From, began, took
		m.requests, m.paged = o.Requests, o.Paged
		m.reach, m.last, m.cheap = reach, o.Rows/s.reader.Page(), [2]cheapPoll{}
	case !set.Once:
		m.nextRepeatedRead = time.Now().Add(max(firstPause, 3*took))
	}
	return nil
}

// lookForMidnight reads the first page of the open window, if that may make it needless to read the day
// before, which costs pages: a row of the first quarter of an hour shows that the day begins at midnight.
func (s *Source) lookForMidnight(ctx context.Context, rd *read, open day) error {
	if !s.open.paged || s.open.from != open || s.calendar.begin(open) == open {
		return nil
	}
	today := window{updated: span{From: open, To: future}, created: always}
	_, err := rd.pages(ctx, today, s.reader.Count(rd.set(today, paging.Growing), 0, 0), "")
	return err
}

// manner chooses how to read the open window. It need not be read wholly if the pass need not be complete,
// no day can be closed, a whole read is not long ago, and one page would not do.
func (s *Source) manner(c *closing, from, last, open day) manner {
	m := &s.open
	switch {
	case c.rd.req.Complete || !m.known || !m.paged || m.from != open || c.anything(from, last):
		return wholly
	case s.clock.Now().Sub(m.began) >= max(wholeEvery, 10*m.took):
		return wholly
	case s.reader.Order() == paging.Unknown, s.clock.Now().Before(s.unsorted):
		return once
	}
	return cheaply
}

// newest is a cheap poll: it reads the end of the open window where changes appear, back to rows that the
// last whole read must have met. It closes no day. ok is false if the service does not sort as it did, or if
// this would cost as much as to read all.
func (s *Source) newest(ctx context.Context, rd *read) (ok bool, err error) {
	m := &s.open
	w := window{updated: span{From: m.since, To: future}, created: always}
	poll := cheapPoll{until: s.clock.Service().Add(-s.cfg.Overlap)}
	rd.newest = &poll
	machine := s.reader.Newest(rd.set(w, paging.Growing), int64(m.reach), m.last, max(3, m.requests/2))
	o, err := rd.pages(ctx, w, machine, "")
	rd.newest = nil
	if err != nil || rd.replan {
		return false, err
	}
	if m.last = o.Last; o.Whole {
		slices.Sort(poll.rows)
		m.cheap = [2]cheapPoll{poll, m.cheap[0]}
	}
	return o.Whole, nil
}

// judgeOrder looks at a row of a pass that reads all. One that cheap polls have missed shows that the order,
// though it looks like that of updates, is another: some rows are pinned to their places, say. No answer
// shows that before such a row changes.
func (s *Source) judgeOrder(row paging.Row) {
	if row.Updated == paging.NoTime || !s.open.missed(row) || s.clock.Now().Before(s.unsorted) {
		return
	}
	s.unsorted = s.clock.Now().Add(unsortedFor)
	s.cfg.Log.Warn("a row changed outside of the service's order, and polls of the newest rows missed it: for "+
		"a day each poll reads all of the open window",
		zap.Stringer("updated_at", schemas.Instant(row.Updated)))
}
