package rest

import (
	"context"
	"fmt"
	"slices"

	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// closing closes the past days of a pass, in order.
//
// A day that cannot be closed delays settling, not the days behind it: they are closed too and remembered,
// and when that day can be closed, settled passes them all at once.
type closing struct {
	rd  *read
	src *Source
	// firstOpen is the first day that is not closed.
	firstOpen day
	// earned becomes settled once the window after it was read, because days may be another zone's (see
	// calendar). MinInstant if no day was closed.
	earned schemas.Instant
	// why the resource settles no further, each reason once.
	why []string
}

// run closes the days from..last that can be closed, and lets settled follow. A first load begins with the
// window of everything up to the earliest day. If there is no row at all, no day is settled: an empty
// service may be one that is just being filled.
func (c *closing) run(ctx context.Context, from, last day) error {
	next, found, err := c.first(ctx, from, last)
	if err != nil || !found {
		return err
	}
	c.firstOpen = next
	for next <= last {
		if c.src.days.closed[next] {
			c.close(span{From: next, To: next})
			next++
			continue
		}
		if why, waits := c.src.days.waits(next); waits {
			c.explain(why)
			next++
			continue
		}
		days := span{From: next, To: min(next+day(c.src.batches.days)-1, c.src.days.freeUntil(next, last))}
		asked := days
		switch {
		case from == past && next == c.firstOpen && c.earned == schemas.MinInstant:
			asked.From = past
		case next == from:
			asked.From = c.src.calendar.begin(from)
		}
		doing := "closing " + days.From.String() + " to " + days.To.String()
		if days.Single() {
			doing = "closing " + days.From.String()
		}
		c.src.cfg.Doing(doing)
		w := updatedOn(asked)
		set := c.rd.set(w, paging.Shrinking)
		set.Like = days.To
		m := c.src.batches.machine(c.src.reader, set, days.Length(), days.From == last)
		o, err := c.rd.pages(ctx, w, m, doing)
		if err == nil && !c.rd.replan {
			err = c.rd.checkEnd(ctx, w, &o)
		}
		if err != nil || c.rd.replan {
			return err
		}
		if again := c.src.batches.adapt(days.Length(), o, c.src.reader); again {
			continue
		}
		c.rd.settled = c.earned // the days before this window: see earned
		if o.Whole {
			c.close(days)
		} else {
			c.leaveOpen(days, o.Why)
		}
		next = days.To + 1
		c.report(c.firstOpen, last)
		if err := c.rd.flushIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// leaveOpen leaves days open, and says why.
func (c *closing) leaveOpen(days span, reason string) {
	why := fmt.Sprintf("%s cannot be closed: %s", days.From, reason)
	c.explain(why)
	if c.rd.spoiled == nil { // else this read ends with an error anyway, and the next one tries again
		c.src.days.leaveOpen(days, why)
	}
	c.src.cfg.Log.Warn("a day cannot be closed yet; later days go on",
		zap.Stringer("day", days.From), zap.String("why", reason))
}

// first returns the first day to close, which is from, or if that is past the day with the earliest row.
// That is looked for once: a wrong day does no harm, because the first window has no lower bound. found is
// false if there is no row now.
func (c *closing) first(ctx context.Context, from, last day) (first day, found bool, err error) {
	if from != past {
		return from, true, nil
	}
	c.src.cfg.Doing("looking for the earliest row")
	if c.src.earliest != past {
		empty, err := c.rd.empty(ctx, updatedOn, last)
		return c.src.earliest, !empty, err
	}
	first, found, err = c.rd.earliest(ctx, updatedOn, last)
	if err == nil && found {
		c.src.earliest = first
	}
	return first, found, err
}

// close records that days are closed, and moves settled over all that are closed without a gap.
func (c *closing) close(days span) {
	firstOpen := c.src.days.close(days, c.firstOpen)
	if firstOpen > c.firstOpen {
		c.firstOpen, c.earned = firstOpen, c.src.calendar.settledBefore(firstOpen)
	}
}

// report shows people the state of the UTC days from settled on, in order and without a gap. The
// service's days before settled are closed, and those up to last are over.
func (c *closing) report(settled, last day) {
	if settled == past { // a first load: it begins with the earliest row
		settled = last + 1
		if c.src.earliest != past {
			settled = c.src.earliest
		}
	}
	var ranges []DayRange
	margin := c.src.calendar.margin()
	d := settled - margin
	for ; d+margin <= last; d++ {
		one := c.src.days.unsettled(span{From: max(settled, d-margin), To: d + margin})
		one.From, one.To = startOf(d).Time(), startOf(d).Time()
		if n := len(ranges) - 1; n >= 0 && ranges[n].State == one.State && ranges[n].Why == one.Why {
			ranges[n].To = one.To
			continue
		}
		ranges = append(ranges, one)
	}
	c.src.cfg.Days(append(ranges, DayRange{From: startOf(d).Time(), State: Open}))
}

// anything reports whether a day in from..last can be tried now. If not, it adds the reasons.
func (c *closing) anything(from, last day) bool {
	if from == past {
		return true
	}
	for d := from; d <= last; d++ {
		if c.src.days.toRead(d) {
			return true
		}
	}
	for d := from; d <= last; d++ {
		if why, waits := c.src.days.waits(d); waits {
			c.explain(why)
		}
	}
	return false
}

// explain adds a reason why the resource settles no further.
func (c *closing) explain(why string) {
	if !slices.Contains(c.why, why) {
		c.why = append(c.why, why)
	}
}

// delays returns the first of these reasons, and how many more there are.
func (c *closing) delays() string {
	switch len(c.why) {
	case 0:
		return ""
	case 1:
		return c.why[0]
	}
	return fmt.Sprintf("%s (and %d more)", c.why[0], len(c.why)-1)
}
