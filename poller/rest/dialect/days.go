package dialect

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// The values of Days.
const (
	UTC   = "utc"
	Other = "other"
)

// Days asks in which zone the filters cut days. No answer proves UTC: a zone may change in the course of a
// year, and created_* and updated_* need not have the same one. So UTC is never relied on. It can be set, to
// drop what earlier answers have shown.
var Days = &Property{
	Name:     "days",
	Question: "In which time zone do date filters cut days?",
	Plain:    UTC,
	Means: map[string]string{
		UTC: "the service cuts days in UTC",
		Other: "the service cuts days in another zone than UTC: a day is asked for with its neighbors, and " +
			"settles a day later",
	},
}

const (
	// Grace allows for a service that filters by finer times than it writes: it writes 23:59:59.9 as the next
	// day's 00:00:00.
	Grace = time.Second
	// zoneReach is more than any zone differs from UTC.
	zoneReach = 24 * time.Hour
)

// Outside judges a row that came among those of the days from (inclusive) to end (exclusive). otherZone is
// set if its time shows that days are cut in another zone. unasked is set if it lies further outside than any
// zone explains: the service does not filter.
func Outside(at, from, end schemas.Instant) (otherZone, unasked bool) {
	off := time.Duration(0)
	switch {
	case at < from:
		off = from.Sub(at)
	case at >= end:
		off = at.Sub(end) + time.Microsecond
	}
	return off > Grace && off <= zoneReach, off > zoneReach
}
