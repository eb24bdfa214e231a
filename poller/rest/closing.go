package rest

import (
	"context"
	"fmt"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/paging"
	"go.uber.org/zap"
)

// closeDays reads the days from rd.next to rd.last, several at once, along updated_at or created_at. If nothing
// is known of the days before, the first window has no lower bound.
//
// A pass closes them, and lets settled follow. A day that cannot be closed delays settling, not the days behind
// it: they are closed too and remembered, and when that day can be closed, settled passes them all at once. Any
// other read ends with an error at a day that was not read whole.
func (s *Source) closeDays(ctx context.Context, rd *read, along func(span) window) error {
	known, batches, verb := s.days, &s.batches, "closing "
	if rd.req.Kind != poller.Pass {
		known, batches, verb = days{}, &batchOfDays{days: 1}, "reading all rows of "
	}
	last, unbounded := rd.last, rd.from == past
	for rd.passClosed(known); rd.next <= last; rd.passClosed(known) {
		next := rd.next
		if known[next].closed || known[next].waits() {
			rd.delay(known[next].why)
			unbounded = false
			rd.next++
			continue
		}
		rd.whole = true
		days := span{From: next, To: min(next+day(batches.days)-1, known.freeUntil(next, last))}
		asked := days
		switch {
		case unbounded:
			asked.From = past
		case next == rd.from:
			asked.From = s.calendar.begin(next)
		}
		s.cfg.Doing(verb + days.String())
		w := along(asked)
		m := batches.machine(s.reader, rd.set(w, paging.Shrinking), days.Length(), next == last)
		o, err := rd.pages(ctx, w, m)
		if err == nil && !rd.replan {
			if batches.adapt(days.Length(), o, s.reader) {
				continue
			}
			err = rd.checkEnd(ctx, w, &o)
		}
		if err != nil || rd.replan {
			return err
		}
		if rd.req.Kind == poller.Pass {
			rd.settled = rd.earned // the days before this window: see earned
		} else if !o.Whole {
			return rd.incomplete(ctx, w, o)
		}
		rd.next, unbounded = days.To+1, false
		if o.Whole {
			known.close(days)
		} else {
			why := fmt.Sprintf("%s cannot be closed: %s", days.From, o.Why)
			rd.delay(why)
			if rd.spoiled == nil { // else this read ends with an error anyway, and the next one tries again
				known.leaveOpen(days, why)
			}
			s.cfg.Log.Warn("a day cannot be closed yet; later days go on",
				zap.Stringer("day", days.From), zap.String("why", o.Why))
		}
		if err := rd.flushIfDue(ctx); err != nil {
			return err
		}
	}
	return nil
}

// passClosed moves the first day that is not closed over all that are closed without a gap.
func (rd *read) passClosed(known days) {
	for ; known[rd.firstOpen].closed; rd.firstOpen++ {
		delete(known, rd.firstOpen)
		rd.earned = rd.src.calendar.settledBefore(rd.firstOpen + 1)
	}
	if rd.next = max(rd.next, rd.firstOpen); rd.req.Kind == poller.Pass {
		rd.src.report(rd.firstOpen, rd.last)
	}
}
