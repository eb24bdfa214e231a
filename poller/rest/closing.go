package rest

import (
	"context"
	"fmt"
	"slices"

	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// closing closes the past days of a pass, in order.
//
// A day that cannot be closed holds settled, not the days behind it: they are closed too and remembered, and
// when that day can be closed, settled passes them all at once.
type closing struct {
	rd  *read
	src *Source
	// settled: the days before it are closed.
	settled day
	// earned settles once the window behind it was read, in case days are another zone's (see calendar).
	// MinInstant: nothing.
	earned schemas.Instant
	// why the resource settles no further, each reason once.
	why reasons
}

// run closes the days from..last that can be closed, and lets settled follow. A first load begins with the
// window of everything up to the earliest day. Where there is no row at all nothing is settled: an empty
// service may be one that is just being filled.
func (c *closing) run(ctx context.Context, from, last day) error {
	next := from
	if from == past {
		var found bool
		var err error
		if next, found, err = c.first(ctx, last); err != nil || !found {
			return err
		}
	}
	c.settled = next
	for next <= last {
		if c.src.days.closed[next] {
			c.close(span{From: next, To: next})
			next++
			continue
		}
		if why, waits := c.src.days.waits(next); waits {
			c.why.add(why)
			next++
			continue
		}
		until := min(next+day(c.src.past.days)-1, c.src.days.freeUntil(next, last))
		days := span{From: next, To: until}
		asked := days
		switch {
		case from == past && next == c.settled && c.earned == schemas.MinInstant:
			asked.From = past
		case next == from:
			asked.From = c.src.calendar.begin(from)
		}
		closed, err := c.window(ctx, days, asked, days == span{From: last, To: last})
		if err != nil {
			return err
		}
		if closed {
			next = days.To + 1
		}
		c.tell(c.settled, last)
		if err := c.rd.flushIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// first is the day with the earliest row. It is looked for once, because the first window has no lower bound,
// whatever day it is said to begin with. found is false where there is no row now.
func (c *closing) first(ctx context.Context, last day) (first day, found bool, err error) {
	c.src.cfg.Doing("looking for the earliest row")
	empty := func(until day) (bool, error) {
		some, counted, err := c.rd.anyRow(ctx, window{updated: span{From: past, To: until}, created: always})
		return !some && counted <= 0, err
	}
	if c.src.earliest != past {
		none, err := empty(last)
		return c.src.earliest, !none, err
	}
	first, found, err = earliest(empty, last)
	if err == nil && found {
		c.src.earliest = first
	}
	return first, found, err
}

// window reads the rows updated on the days asked and closes days, or holds them. done is false where these
// were too many days at once.
func (c *closing) window(ctx context.Context, days, asked span, newest bool) (done bool, err error) {
	doing := "closing " + days.From.String()
	if !days.Single() {
		doing += " to " + days.To.String()
	}
	c.src.cfg.Doing(doing)
	set := c.rd.set(window{updated: asked, created: always}, paging.Shrinking)
	set.Like = days.To
	set.Left = c.src.pagesLeft(doing)
	o, again, err := c.src.past.read(ctx, c.src.reader, set, days.Length(), newest)
	if err == nil && o.Whole {
		o.Why, err = c.rd.learnUpTo(ctx, dialect.UpdatedTo, updatedOn(span{From: days.To, To: days.To + 1}))
		o.Whole = o.Why == ""
	}
	if err != nil || again {
		return false, err
	}
	c.rd.settled = c.earned
	if o.Whole {
		c.close(days)
		return true, nil
	}
	why := fmt.Sprintf("%s cannot be closed: %s", days.From, o.Why)
	c.why.add(why)
	if c.rd.spoiled == nil { // else this read ends with an error anyway, and the next one tries again
		c.src.days.hold(days, why)
	}
	c.src.cfg.Log.Warn("a day cannot be closed yet; later days go on",
		zap.Stringer("day", days.From), zap.String("why", o.Why))
	return true, nil
}

// close notes that days are closed, and moves settled over all that are closed without a gap.
func (c *closing) close(days span) {
	settled := c.src.days.close(days, c.settled)
	if settled > c.settled {
		c.settled, c.earned = settled, c.src.calendar.settledBefore(settled)
	}
}

// tell tells people what is known of the UTC days from settled on, in order and without a gap. The service's
// days before settled are closed, and those up to last are over.
func (c *closing) tell(settled, last day) {
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

// anything tells whether a day in from..last can be tried now. Where none can, it adds the reasons.
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
			c.why.add(why)
		}
	}
	return false
}

// reasons why a resource settles no further.
type reasons []string

func (r *reasons) add(why string) {
	if !slices.Contains(*r, why) {
		*r = append(*r, why)
	}
}

// held is what Done says of the reasons: the first, and how many more there are.
func (r reasons) held() string {
	switch len(r) {
	case 0:
		return ""
	case 1:
		return r[0]
	}
	return fmt.Sprintf("%s (and %d more)", r[0], len(r)-1)
}
