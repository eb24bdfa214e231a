package rest

import (
	"context"
	"fmt"

	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// closeDays closes the days of a pass that are over and can be closed, and lets settled follow. In a first load
// the first window has no lower bound.
//
// A day that cannot be closed delays settling, not the days behind it: they are closed too and remembered,
// and when that day can be closed, settled passes them all at once.
func (s *Source) closeDays(ctx context.Context, rd *read) error {
	from, next, last := rd.from, rd.next, rd.last
	firstOpen := next // the first day that is not closed
	advance := func() {
		for ; s.days[firstOpen].closed; firstOpen++ {
			delete(s.days, firstOpen)
			rd.earned = s.calendar.settledBefore(firstOpen + 1)
		}
		next = max(next, firstOpen)
	}
	advance()
	for next <= last {
		if s.days[next].closed || s.days[next].waits() {
			rd.delay(s.days[next].why)
			next++
			continue
		}
		rd.whole = true
		days := span{From: next, To: min(next+day(s.batches.days)-1, s.days.freeUntil(next, last))}
		asked := days
		switch {
		case from == past && next == firstOpen && rd.earned == schemas.MinInstant:
			asked.From = past
		case next == from:
			asked.From = s.calendar.begin(from)
		}
		doing := "closing " + days.From.String() + " to " + days.To.String()
		if days.Single() {
			doing = "closing " + days.From.String()
		}
		s.cfg.Doing(doing)
		w := updatedOn(asked)
		m := s.batches.machine(s.reader, rd.set(w, paging.Shrinking), days.Length(), days.From == last)
		o, err := rd.pages(ctx, w, m, doing)
		if err == nil && !rd.replan {
			if s.batches.adapt(days.Length(), o, s.reader) {
				continue
			}
			err = rd.checkEnd(ctx, w, &o)
		}
		if err != nil || rd.replan {
			return err
		}
		rd.settled = rd.earned // the days before this window: see earned
		if o.Whole {
			s.days.close(days)
		} else {
			why := fmt.Sprintf("%s cannot be closed: %s", days.From, o.Why)
			rd.delay(why)
			if rd.spoiled == nil { // else this read ends with an error anyway, and the next one tries again
				s.days.leaveOpen(days, why)
			}
			s.cfg.Log.Warn("a day cannot be closed yet; later days go on",
				zap.Stringer("day", days.From), zap.String("why", o.Why))
		}
		next = days.To + 1
		advance()
		s.report(firstOpen, last)
		if err := rd.flushIfDue(ctx); err != nil {
			return err
		}
	}
	return nil
}
