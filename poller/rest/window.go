package rest

import (
	"fmt"
	"net/url"
	"strconv"

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

// query is the request for one page of w, so that all of its last days is in it: dayAfter is set for a
// dimension if the day after is written for that. The service refuses a request without any date, so w has a
// bound.
func (w window) query(dayAfter [2]bool, page, size int) string {
	v := url.Values{"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(size)}}
	for i, name := range dimensions {
		if w[i].From != past {
			v.Set(name+"_from", w[i].From.String())
		}
		switch to := w[i].To; {
		case to == future:
		case dayAfter[i]:
			v.Set(name+"_to", (to + 1).String())
		default:
			v.Set(name+"_to", to.String())
		}
	}
	return v.Encode()
}
