package rest

import (
	"fmt"

	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

type (
	day  = paging.Day
	span = paging.Span
)

const (
	past   = paging.Past
	future = paging.Future
)

var always = paging.Always

const dayLength = schemas.Instant(24 * 60 * 60 * 1e6)

func dayOf(i schemas.Instant) day { return day(i.Day() / dayLength) }

// startOf returns the first instant of d. That of past is before all, that of future behind all.
func startOf(d day) schemas.Instant {
	switch d {
	case past:
		return schemas.MinInstant
	case future:
		return schemas.MaxInstant
	}
	return schemas.Instant(d) * dayLength
}

// window is a set of rows that the service can be asked for: those updated in one span and created in
// another.
type window [2]span

// The spans of a window, and all that the service may read in another way for one of them.
const (
	updated = iota
	created
)

var (
	dimensions = [2]string{updated: "updated", created: "created"}
	toDates    = [2]*dialect.Property{updated: dialect.UpdatedTo, created: dialect.CreatedTo}
)

// on returns the rows that were updated, or created, on some days.
func on(dimension int, days span) window {
	w := window{always, always}
	w[dimension] = days
	return w
}

func (w window) String() string {
	return fmt.Sprintf("rows updated %s and created %s", w[updated], w[created])
}
