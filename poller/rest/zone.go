package rest

import (
	"errors"
	"time"

	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// The document says that timestamps are UTC and that the filters take days. It does not say whose days. If the service cuts them in another
// zone, the rows of one UTC day lie in two of its days: closing the one that bears the UTC day's date would lose the rows of the other. Such
// a service gives itself away by rows outside of the UTC day that was asked for. From then on a UTC day is read as the service's day of that
// date and both its neighbours, and a day is over a day later, so that no zone (they reach 14 hours either way) makes a difference.

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
				rd.Log.Warn(g.doubt, zap.String("resource", rd.Resource.Name))
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
	return dayOf(s.client.clock.over().Add(-s.Overlap)) - 1 - s.margin()
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
