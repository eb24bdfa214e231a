package rest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// Zone is what is known of how the service cuts days: in which zone, and where the last day of a window
// ends. The sources of one process share it, because one service answers all of them.
type Zone struct {
	notUTC atomic.Bool // a source has found out
	upTo   [toDates]upTo
}

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
//     the service's day d+1, which is not read yet. So a batch reports d as closed only after the window
//     behind it was read, which would have shown them (closing.earned).
//   - Days that begin late (America): the first hours of the UTC day d lie in the service's day d-1, which
//     may be closed already. So a pass begins to read a day before the first that it settles (begin). It
//     begins on that day only if an answer from that day on has shown a row of its first quarter of an
//     hour: then the day began at midnight or before, because zones differ by quarters.
//
// A service in another zone shows itself by rows outside of the UTC days that were asked for. From then on,
// a UTC day is read as the service's day of that date and both its neighbors, for all resources. A day is
// over a day later, so that no zone makes a difference (they reach 14 hours either way).
type calendar struct {
	clock   *client.Clock
	overlap time.Duration
	// notUTC: the service is known to cut days in another zone than UTC.
	notUTC bool
	// midnights: the service is known to read these to_ dates as midnights (see upTo).
	midnights [toDates]bool
	// begun is the newest day that was shown to begin at midnight UTC or before.
	begun  day
	strays bool // the log has reported rows that were not asked for
}

const (
	// grace allows for a service that filters by finer times than it writes: it writes 23:59:59.9 as the next
	// day's 00:00:00.
	grace = time.Second
	// zoneReach is more than any zone differs from UTC.
	zoneReach = 24 * time.Hour
)

// wentBack returns a *poller.LostError where the service's clock shows a time that is settled: what
// changes now is stamped with it, and no pass that begins at settled meets that. Whatever was stamped before
// the first answer by the new time is on that day too, or is left to the sweep.
func (c *calendar) wentBack(settled schemas.Instant) error {
	now, back := c.clock.Before(settled)
	if !back {
		return nil
	}
	from := c.settledBefore(dayOf(now.Add(-c.overlap)))
	return &poller.LostError{From: from, Sweep: true, Why: fmt.Sprintf("the service's clock was set back: it "+
		"shows %s, and all before %s is settled. It is read again from %s on", now, settled, from)}
}

// check looks for rows that were not asked for. elsewhere is set if they show that the service cuts days in
// another zone than UTC. Rows further off say that it does not filter as we ask, so its answer proves
// nothing.
func (c *calendar) check(a *paging.Answer, asked span, log *zap.Logger) (elsewhere bool) {
	for _, row := range a.Rows {
		if row.Updated == paging.NoTime {
			continue
		}
		at := schemas.Instant(row.Updated)
		if asked.From > c.begun && at >= startOf(asked.From) && at < startOf(asked.From)+quarter {
			c.begun = asked.From
		}
		off := outside(at, asked)
		switch {
		case off <= grace:
		case off <= zoneReach && !c.notUTC:
			return true
		case off > zoneReach:
			a.Doubt = "the service answers with rows that were not asked for, as if it did not filter by updated_at"
			if !c.strays {
				c.strays = true
				log.Warn(a.Doubt)
			}
		}
	}
	return false
}

// outside is how far i lies outside of the UTC days of s; 0 inside.
func outside(i schemas.Instant, s span) time.Duration {
	if s.From != past && i < startOf(s.From) {
		return startOf(s.From).Sub(i)
	}
	if s.To != future && i >= startOf(s.To+1) {
		return i.Sub(startOf(s.To+1)) + time.Microsecond
	}
	return 0
}

// margin is how many days around a UTC day are asked for.
func (c *calendar) margin() day {
	if c.notUTC {
		return 1
	}
	return 0
}

// lastOver is the newest of the service's days that is over: by both clocks its end, and overlap, have
// passed. Where the midnight at its end is in its window, too, that has passed with all its fractions.
func (c *calendar) lastOver() day {
	over := c.clock.Over().Add(-c.overlap)
	if c.midnights[updatedTo] {
		over = over.Add(-grace)
	}
	return dayOf(over) - 1 - c.margin()
}

// query is the request for one page of w, so that all of its last days is in it.
func (c *calendar) query(w window, page, size int) string {
	if c.midnights[updatedTo] {
		w.updated.To = dayAfter(w.updated.To)
	}
	if c.midnights[createdTo] {
		w.created.To = dayAfter(w.created.To)
	}
	return w.query(page, size)
}

func dayAfter(d day) day {
	if d == future {
		return d
	}
	return d + 1
}

// settledBefore is what is settled once the service's days before d are closed.
func (c *calendar) settledBefore(d day) schemas.Instant { return startOf(d - c.margin()) }

// firstDay is the first of the service's days in which a row updated at or after i can be.
func (c *calendar) firstDay(i schemas.Instant) day {
	if i == schemas.MinInstant {
		return past
	}
	return dayOf(i) - c.margin()
}

// begin returns the first day to read, so that the rows of the UTC days from d on are among those read.
func (c *calendar) begin(d day) day {
	if d == past || c.notUTC || c.begun == d {
		return d
	}
	return d - 1
}

// around returns the service's days that can have the rows of the UTC day of i, in any zone. It ends a day
// later than zones need, because a service may read the last date as its midnight.
func around(i schemas.Instant) span {
	d := dayOf(i)
	return span{From: d - 1, To: d + 2}
}
