package rest

import (
	"fmt"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// calendar knows which of the service's days are over, and in which of them the rows of a UTC day can be.
//
// The document says that timestamps are UTC and that the filters take days. It does not say in which zone
// these days are, nor that all filters use the same zone. If the service cuts days in another zone, the rows
// of one UTC day are in two of its days. A zone may also change in the course of a year, so no answer proves
// it for other days.
//
// So no question relies on UTC. A lookup also asks for the days on either side before it believes that a row
// is gone (around). A pass settles only the days that are complete in every zone:
//
//   - Days that begin early (Asia): once the days up to d are closed, the last hours of the UTC day d lie in
//     the service's day d+1, which is not read yet. So d is settled only after the window behind it was
//     read whole, which would have shown them. If that could not be read whole, only the days before d are
//     settled.
//   - Days that begin late (America): the first hours of the UTC day d lie in the service's day d-1, which
//     may be closed already. So a pass begins to read a day before the first that it settles (begin). It
//     begins on that day only if an answer from that day on has shown a row of its first quarter of an
//     hour: then the day began at midnight or before, because zones differ by quarters.
//
// A service in another zone shows itself by rows outside of the UTC days that were asked for. From then on,
// a UTC day is read as the service's day of that date and both its neighbors, for all resources. A day is
// over a day later, so that no zone makes a difference (they reach 14 hours either way).
//
// If a to_ date is known to be a midnight (dialect.UpdatedTo), the day after is written. That asks for no
// less, however the service reads it. If it takes in whole days after all, a window shows rows of the day
// after its last one, and that day may still gain rows. No such row counts: a row that has just come is of
// today or, if it is stamped before midnight, an overlap old at most. It lies outside of the days asked for,
// so check stops the read. In another zone than UTC the last day is two days old, and a row that comes lies
// half a day and more behind the day after.
type calendar struct {
	clock   *client.Clock
	overlap time.Duration
	dialect *dialect.Dialect
	// The dialect's values by which this read asks: margin is how many days around a UTC day are asked for, one
	// if days are cut in another zone. midnights is set if the to_ dates of a dimension are midnights.
	margin    day
	midnights [2]bool
	// widened is one if the service refuses a window that begins and ends on one day. Then the day after is
	// written as the end of every window. However to_ dates are read, that takes in no less, and rows of the day
	// after may come, too. So a day is over when the day after is. Else it is zero.
	widened day
	// begun is the newest day that was shown to begin at midnight UTC or before.
	begun day
}

// adopt takes over the dialect's values, which any source of this process may have proven. It reports whether
// days are asked for in another way from now on. That is right at any time: all before settled was read, and
// a read goes on with the neighbors of the day in which settled lies.
func (c *calendar) adopt() (changed bool) {
	before := *c
	if c.margin = 0; c.dialect.Value(dialect.Days) == dialect.Other {
		c.margin = 1
	}
	for i, to := range toDates {
		c.midnights[i] = c.dialect.Value(to) == dialect.Midnight
	}
	return *c != before
}

// wentBack returns a *poller.LostError if the service's clock shows a time that is settled. Rows that change
// now are stamped with that time, and no pass that begins at settled meets them. Rows that were stamped
// before the first answer by the new time are on that day too, or are left to the sweep.
func (c *calendar) wentBack(settled schemas.Instant) error {
	now, back := c.clock.Before(settled)
	if !back {
		return nil
	}
	from := c.settledBefore(dayOf(now.Add(-c.overlap)), true)
	return &poller.LostError{From: from, Sweep: true, Why: fmt.Sprintf("the service's clock was set back: it "+
		"shows %s, and all before %s is settled. It is read again from %s on", now, settled, from)}
}

// check looks for rows that were not asked for. replan is set if they show how the service cuts days, or
// contradict the dialect. Rows further off show that the service does not filter as we ask, so its answer
// proves nothing.
func (c *calendar) check(a *paging.Answer, asked span) (replan bool) {
	end := schemas.MaxInstant
	if asked.To != future {
		end = startOf(asked.To + 1 + c.widened)
	}
	for _, row := range a.Rows {
		if row.Updated == paging.NoTime {
			continue
		}
		at := schemas.Instant(row.Updated)
		if asked.From > c.begun && at >= startOf(asked.From) && at < startOf(asked.From)+dialect.Quarter {
			c.begun = asked.From
		}
		switch otherZone, unasked := dialect.Outside(at, startOf(asked.From), end); {
		case otherZone && c.margin == 0:
			c.dialect.Prove(dialect.Days, dialect.Other, rowAmong(at, asked))
			return true
		case unasked:
			a.Doubt = "the service answers with rows that were not asked for, as if it did not filter by updated_at"
		}
	}
	return false
}

// rowAmong is evidence: a row of that time came among those of some days.
func rowAmong(at schemas.Instant, asked span) string {
	return fmt.Sprintf("a row of %s came among the rows of %s", at, asked)
}

// lastOver returns the newest of the service's days that is over: by both clocks its end, and overlap, have
// passed. If its window includes the midnight at its end, all fractions of that midnight have passed too.
func (c *calendar) lastOver() day {
	over := c.clock.Over().Add(-c.overlap)
	if c.midnights[updated] {
		over = over.Add(-dialect.Grace)
	}
	return dayOf(over) - 1 - c.margin - c.widened
}

// dayAfter is one if the day after the last one of a dimension is written for windows, else zero.
func (c *calendar) dayAfter(dimension int) day {
	if c.midnights[dimension] {
		return 1
	}
	return c.widened
}

// settledBefore returns the settled instant once the service's days before d are closed. behind is set if d
// was read whole, too.
func (c *calendar) settledBefore(d day, behind bool) schemas.Instant {
	if c.margin > 0 || !behind {
		d--
	}
	return startOf(d)
}

// begin returns the first day to read, so that the rows of the UTC days from d on are among those read.
func (c *calendar) begin(d day) day {
	if d == past || c.margin > 0 || c.begun == d {
		return d
	}
	return d - 1
}

// narrow returns the least of the service's days that have the rows of the UTC day of i, as far as is known.
func (c *calendar) narrow(i schemas.Instant) span {
	d := dayOf(i)
	return span{From: d - c.margin, To: d + c.margin}
}

// around returns the service's days that can have the rows of the UTC day of i, in any zone. It ends a day
// later than zones need, because a service may read the last date as its midnight.
func around(i schemas.Instant) span {
	d := dayOf(i)
	return span{From: d - 1, To: d + 2}
}
