package rest

import (
	"strconv"

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

func startOf(d day) schemas.Instant { return schemas.Instant(d) * dayLength }

// window is a set of rows that the service can be asked for: those updated in one span and created in
// another.
type window struct{ updated, created span }

func (w window) String() string {
	switch always {
	case w.updated:
		return "rows created " + w.created.String()
	case w.created:
		return "rows updated " + w.updated.String()
	}
	return "rows updated " + w.updated.String() + " and created " + w.created.String()
}

// query is the request for one page of w. The service refuses a request without any date, so a window
// without bounds asks for everything until the last day that can be written.
func (w window) query(page, size int) string {
	b := make([]byte, 0, 160)
	param := func(name, value string) {
		if len(b) > 0 {
			b = append(b, '&')
		}
		b = append(append(append(b, name...), '='), value...)
	}
	bound := func(name string, d day) {
		if d != past && d != future {
			param(name, d.String())
		}
	}
	bound("created_from", w.created.From)
	bound("created_to", w.created.To)
	bound("updated_from", w.updated.From)
	bound("updated_to", w.updated.To)
	if len(b) == 0 {
		param("updated_to", dayOf(schemas.MaxInstant).String())
	}
	param("page", strconv.Itoa(page))
	param("page_size", strconv.Itoa(size))
	return string(b)
}
