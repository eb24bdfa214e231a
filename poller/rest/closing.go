package rest

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"go.uber.org/zap"
)

// findFirst finds rd.next, the first day to read. In a first load that is the first day up to which there
// are rows, along updated_at or created_at. It is found by bisection: some 15 requests for one row each. If
// there is no row at all, which a second answer has to confirm, rd.next is behind rd.last, and no day is
// settled: an empty service may be one that is just being filled. known is the result of an earlier search:
// if there are rows at all, it is good still.
//
// The day only says where to begin to cut the past into windows. The first window has no lower bound, so a
// wrong answer here costs requests and loses nothing.
func (rd *read) findFirst(ctx context.Context, dimension int, known day) (err error) {
	defer func() { rd.firstOpen = rd.next }()
	if rd.next = rd.from; rd.next == past && rd.src.days[known].waits() {
		rd.next = known // until that day is read, settled does not move
	}
	if rd.next != past {
		return nil
	}
	rd.src.cfg.Doing("looking for the earliest row")
	refused, answered := "", false
	counted := false // a count proves nothing if no row is shown
	hasRows := func(until int) (met bool) {
		if err != nil {
			return true
		}
		w := on(dimension, span{From: past, To: day(until)})
		answered = false
		var why string
		why, err = rd.glance(ctx, w, 0, 1, func(p client.Page) (enough bool) {
			answered = true
			met, counted = met || len(p.Rows) > 0, counted || p.Count > 0
			return met
		})
		if !answered {
			refused = why
		}
		return met || err != nil
	}
	met := hasRows(int(rd.last))
	if !met { // one empty answer, or one refusal, may have another cause
		met = hasRows(int(rd.last))
	}
	rd.unbounded = answered
	switch {
	case err != nil:
	case !answered:
		rd.next, err = rd.firstGiven(ctx, dimension, refused)
	case !met && !counted:
		rd.next = rd.last + 1
	case known != past:
		rd.next = known
	default: // rows from before 1970 end up in the first window
		rd.next = day(sort.Search(int(rd.last), hasRows))
	}
	if err == nil && refused != "" {
		rd.src.cfg.Log.Info("the service does not give earlier days: rows are read from this one on",
			zap.Stringer("day", rd.next), zap.String("why", refused))
	}
	return err
}

const (
	// earliestDay is where firstGiven stops: rows of earlier days are not expected. earliestLimited is the same
	// if the service limits the days of a window. To 1900 it would take thousands of requests.
	earliestDay     = -25_567 // 1900-01-01
	earliestLimited = 10_957  // 2000-01-01

	// todayEvery is the default of Source.todayEvery.
	todayEvery = 30 * time.Second
)

// firstGiven finds the first day that the service answers for, if it refuses a window without a first day.
// That refusal does not show whether earlier rows exist, so firstGiven asks for single days. The service may
// answer for a day before one that it refuses. So firstGiven looks below each day that it finds, at ever
// shorter distances.
//
// Days are left out only if the service refuses both the day before and the window without a first day. If
// either request fails in another way, rows may be there: a part of the service's data may be down, or the
// first rows of that day cannot be read. Then the day before is read. It stays open, and settled stays before
// it.
//
// A full reading has to meet every row, and cannot show that no earlier rows exist. So it ends with an error.
// A start helps only if the service answers for a day: it may refuse the parameters.
func (rd *read) firstGiven(ctx context.Context, dimension int, refused string) (first day, err error) {
	s, name := rd.src, rd.src.cfg.Resource.Name
	refuses := client.Refusal(rd.failed) != nil
	answers := func(d day) (answered bool) {
		_, err = rd.glance(ctx, on(dimension, span{From: d, To: d}), 0, 1, func(client.Page) (enough bool) {
			answered = true
			return true
		})
		return answered
	}
	switch {
	case rd.req.Kind != poller.Pass && refuses && answers(rd.last):
		return 0, fmt.Errorf("%s: not all rows can be read: %s. It answers for one day (%s). Perhaps "+
			"it gives rows from some day on: then set resources.%s.start to that day", name, refused, rd.last, name)
	case rd.req.Kind != poller.Pass:
		return 0, cmp.Or(err, fmt.Errorf("%s: not all rows can be read: %s", name, refused))
	}
	first = rd.last + 1
	for earlier := true; earlier; {
		earlier = false
		for step := day(1 << 15); step > 0; step /= 2 {
			if err == nil && first-step >= earliestDay && answers(first-step) {
				first, earlier = first-step, true
			}
		}
	}
	switch refuses = refuses && client.Refusal(rd.failed) != nil; {
	case err != nil:
	case first > rd.last:
		err = fmt.Errorf("%s: the service gives no rows of past days: %s", name, refused)
	case first > earliestDay && !refuses:
		first--
	case s.form >= nearDays && s.batches.most > 0 && first < earliestLimited:
		first = earliestLimited
		s.cfg.Log.Warn("the service limits the days of a window: a first load reads rows from 2000-01-01 on")
	}
	return first, err
}

// closeDays reads the days of a dimension from rd.next to rd.last, several at once. If rd.unbounded is set,
// the first window has no lower bound.
//
// A pass closes the days, and settled follows. A day that cannot be closed delays settling. The days behind
// it are closed and remembered all the same. Once that day can be closed, settled passes all of them at once.
// Any other read ends with an error at a day that was not read whole.
func (rd *read) closeDays(ctx context.Context, dimension int) error {
	s := rd.src
	known, batches, verb := s.days, &s.batches, "closing "
	if rd.req.Kind != poller.Pass {
		known, batches, verb = days{}, &batchOfDays{days: 1, most: s.batches.most}, "reading all rows of "
	}
	last, unbounded, read := rd.last, rd.unbounded, past // the last day that was read
	if rd.from == past {
		read = rd.next - 1
	}
	rd.passClosed(known)
	for rd.next <= last {
		next := rd.next
		if known[next].closed || known[next].waits() {
			rd.delay(known[next].why)
			unbounded = false
			rd.next++
			continue
		}
		rd.whole = true // rows that leave this day meanwhile are in the open window
		days := span{From: next, To: known.freeUntil(next, min(last, next+day(batches.days)-1))}
		asked := days
		switch {
		case unbounded:
			asked.From = past
		case next != read+1: // the day before was not read
			asked.From = s.calendar.begin(next)
		}
		s.cfg.Doing(verb + days.String())
		w := on(dimension, asked)
		m := batches.machine(s.reader, rd.set(w, false), days.Length(), next == last)
		rd.failed = nil
		o, err := rd.pages(ctx, w, m)
		if err == nil {
			refused := o.Failed && client.Refusal(rd.failed) != nil
			again := batches.adapt(days.Length(), refused, o, s.reader)
			if s.batches.most = batches.most; again {
				continue
			}
			err = rd.checkEnd(ctx, w, &o)
		}
		if err != nil {
			return err
		}
		switch {
		case rd.req.Kind != poller.Pass && !o.Whole:
			return rd.incomplete(ctx, w, o)
		case rd.req.Kind == poller.Pass && next == rd.firstOpen:
			rd.settle(o.Whole)
		}
		rd.next, unbounded, read = days.To+1, false, days.To
		if o.Whole {
			known.note(days, "")
		} else {
			why := fmt.Sprintf("%s cannot be closed: %s", days.From, o.Why)
			rd.delay(why)
			if rd.spoiled == nil { // else this read ends with an error anyway, and the next one tries again
				known.note(days, why)
			}
			s.cfg.Log.Warn("a day cannot be closed yet; later days go on",
				zap.Stringer("day", days.From), zap.String("why", o.Why))
		}
		rd.passClosed(known)
		if rd.req.Kind == poller.Pass && time.Since(rd.shown) >= max(s.todayEvery, 3*rd.showing) {
			if err := s.showToday(ctx, rd, s.openWindow(rd.open)); err != nil {
				return err
			}
		}
		if time.Since(rd.flushed) >= s.linger {
			if err := rd.flush(ctx, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// passClosed moves the first day that is not closed over all that are closed without a gap.
func (rd *read) passClosed(known days) {
	for ; known[rd.firstOpen].closed; rd.firstOpen++ {
		rd.closed = true
	}
	if rd.next = max(rd.next, rd.firstOpen); rd.req.Kind == poller.Pass {
		rd.src.cfg.Days(known.ranges(rd.firstOpen, rd.last, rd.src.calendar.margin))
	}
}
