package rest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/storestream/storestream/schemas"
)

// The document says that timestamps are UTC and that the filters take days. It does not say whose days. If the service cuts them in another
// zone, the rows of one UTC day lie in two of its days: closing the one that bears the UTC day's date would lose the rows of the other. Such
// a service gives itself away by rows outside of the UTC day that was asked for. From then on, for all resources, a UTC day is read as the service's
// day of that date and both its neighbours, and a day is over a day later, so that no zone (they reach 14 hours either way) makes a difference.
//
// Until then nothing may be settled that a zone could have hidden:
//
//   - Days that begin early (Asia): once the days up to d are closed, the last hours of the UTC day d lie in the service's day d+1, unread. So that d is
//     closed is only said when the window behind it was read: it would have shown them (read.closed).
//   - Days that begin late (America): the first hours of the UTC day d lie in the service's day d-1. So a new source begins with a look at the day
//     before the first that it reads, and the open window begins a day earlier where that makes no further page. (Where it does there are so many rows that
//     some lie close behind a midnight, and closing any day shows them.)

// Zone is what is known of the zone in which the service cuts days. The sources of one process share it, because one
// service answers all of them.
type Zone struct {
	notUTC atomic.Bool // a source has found out
}

// errZone ends a read in which rows were met that belong to a neighbouring UTC day.
var errZone = errors.New("the service cuts days in another zone than UTC")

const (
	// grace allows for a service that rounds to the second what it filters by finer: 23:59:59.9 is then written as the next day's 00:00:00.
	grace = time.Second
	// zoneReach is more than any zone differs from UTC.
	zoneReach = 24 * time.Hour
)

// inside looks for rows that were not asked for. errZone where days are cut elsewhere. Rows further off say that the service does not
// filter as we ask, so its answer proves nothing.
func (rd *read) inside(g *glimpse, asked span) error {
	for _, s := range g.rows {
		if s.updated == schemas.MinInstant {
			continue
		}
		off := outside(s.updated, asked)
		switch {
		case off <= grace:
		case off <= zoneReach && !rd.wide:
			return errZone
		case off > zoneReach:
			g.doubt = "the service answers with rows that were not asked for, as if it did not filter by updated_at"
			if !rd.strays {
				rd.strays = true
				rd.Log.Warn(g.doubt)
			}
		}
	}
	return nil
}

// outside is how far i lies outside of the UTC days of s; 0 inside.
func outside(i schemas.Instant, s span) time.Duration {
	if s.from != past && i < s.from.start() {
		return s.from.start().Sub(i)
	}
	if s.to != future && i >= (s.to+1).start() {
		return i.Sub((s.to + 1).start()) + time.Microsecond
	}
	return 0
}

// margin is how many days around a UTC day are asked for.
func (s *Source) margin() day {
	if s.wide {
		return 1
	}
	return 0
}

// lastOver is the newest of the service's days that is over: by both clocks its end, and overlap, have passed.
func (s *Source) lastOver() day {
	return dayOf(s.clock.Over().Add(-s.Overlap)) - 1 - s.margin()
}

// settledAfter is what is settled once the service's days up to d are closed.
func (s *Source) settledAfter(d day) schemas.Instant { return (d + 1 - s.margin()).start() }

// firstDay is the first of the service's days in which a row updated at or after i can be.
func (s *Source) firstDay(i schemas.Instant) day {
	if i == schemas.MinInstant {
		return past
	}
	return dayOf(i) - s.margin()
}

// widen takes over what any source of this process has found out about the zone. That is right at any time: all before settled was read, and a read goes on
// with the neighbours of the day in which settled lies.
func (s *Source) widen() {
	if s.wide || !s.Zone.notUTC.Load() {
		return
	}
	s.wide = true
	s.memory = newMemory()
	s.Log.Warn("the service cuts days in another zone than UTC: a day is asked for with its neighbours from now on, and settles a day later")
}

// lookBefore looks at the day before the first that this source reads. What it shows is inside of that day, or errZone.
func (rd *read) lookBefore(ctx context.Context, first day) error {
	if first == past {
		rd.neighbour = true // there is none, and from here on day follows day
	}
	if rd.wide || rd.neighbour {
		return nil
	}
	_, err := rd.reader.glance(ctx, window{updated: span{first - 1, first - 1}, created: always}, growing)
	rd.neighbour = err == nil
	return err
}

// openFrom is where to begin to read the open window.
func (rd *read) openFrom(open day) day {
	if rd.wide || rd.memory.tight == open {
		return open
	}
	return open - 1
}
