package storefake

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// The document's limits on a page.
const (
	maxPageSize     = 1000
	defaultPageSize = 1000
)

var statuses = []string{Cancelled, Complete, Processing, Returned, Shipped}

// params are the parameters of a data request.
type params struct {
	query    query
	page     int
	pageSize int // granted
	asked    int // for
}

// parseParams reads the query parameters of a request for res, or returns what is wrong. Parameters that the
// document does not have for the resource are ignored.
func parseParams(res *resource, values url.Values, read *Readings, words *dictionary) (params, *failure) {
	p := params{query: query{created: anytime, updated: anytime, status: null, order: null, before: null},
		pageSize: defaultPageSize}
	if !values.Has("created_from") && !values.Has("created_to") && !values.Has("updated_from") &&
		!values.Has("updated_to") {
		return p, &failure{400, "missing_required_param",
			"one of created_from, created_to, updated_from, updated_to is required", ""}
	}
	for _, d := range []struct {
		name string
		to   *cell
		more time.Duration // of the day that is in the span
		zone time.Duration // east of UTC
	}{
		{"created_from", &p.query.created.from, 0, read.DayOffset + read.CreatedOffset},
		{"created_to", &p.query.created.to, lastDay(read.CreatedToMidnight), read.DayOffset + read.CreatedOffset},
		{"updated_from", &p.query.updated.from, 0, read.DayOffset},
		{"updated_to", &p.query.updated.to, lastDay(read.UpdatedToMidnight), read.DayOffset},
	} {
		if !values.Has(d.name) {
			continue
		}
		date, err := time.Parse(time.DateOnly, values.Get(d.name))
		if err != nil {
			return p, invalid(d.name, "must be a date in the format YYYY-MM-DD")
		}
		*d.to = cellOf(date.Add(d.more - d.zone))
	}
	if f := p.parsePage(values, read); f != nil {
		return p, f
	}
	return p, p.parseFilter(res, values, words)
}

// lastDay is how much of the day that it names a to_ date takes in.
func lastDay(midnight bool) time.Duration {
	if midnight {
		return time.Microsecond
	}
	return 24 * time.Hour
}

func (p *params) parsePage(values url.Values, read *Readings) *failure {
	if values.Has("page") {
		n, err := strconv.Atoi(values.Get("page"))
		if err != nil || n < 0 {
			return invalid("page", "must be an integer from 0 on")
		}
		p.page = n
	}
	if values.Has("page_size") {
		n, err := strconv.Atoi(values.Get("page_size"))
		if err != nil || n < 1 {
			return invalid("page_size", "must be an integer from 1 to 1000")
		}
		if n > maxPageSize && read.Oversize == OversizeRefused {
			return invalid("page_size", "must be at most 1000")
		}
		p.pageSize = min(n, maxPageSize)
	}
	p.asked = p.pageSize
	if read.MaxPage > 0 {
		p.pageSize = min(p.pageSize, read.MaxPage)
	}
	return nil
}

// turnPages sets the limit of rows a page for request number n.
func (r *Readings) turnPages(n, seed uint64) {
	if r.PageTurns > 0 {
		part := 1 + int(3*unit(int64(n/uint64(r.PageTurns)), seed))
		r.MaxPage = max(1, cmp.Or(r.MaxPage, maxPageSize)/part)
	}
}

func (p *params) parseFilter(res *resource, values url.Values, words *dictionary) *failure {
	if !values.Has(res.filter) {
		return nil
	}
	switch value := values.Get(res.filter); res.filter {
	case "status":
		if !slices.Contains(statuses, value) {
			return invalid("status", "must be one of Cancelled, Complete, Processing, Returned, Shipped")
		}
		p.query.status = words.number(value)
	case "order_id":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return invalid("order_id", "must be a positive integer")
		}
		p.query.order = cell(n)
	}
	return nil
}

func invalid(name, rule string) *failure {
	return &failure{400, "invalid_param", name + " " + rule, name}
}

// bounds is the part of a listing that a page holds. The page after a short or an empty page continues after
// its last row, so every row is on some page.
type bounds struct{ from, rows int }

// boundsOf page number n. Which pages fall short is the same on every request.
func boundsOf(read *Readings, seed uint64, n, size int) bounds {
	if read.EmptyPages == 0 && read.ShortPages == 0 {
		if n > maxPageNumber {
			return bounds{maxPageNumber, size}
		}
		return bounds{n * size, size}
	}
	s := bounds{}
	for i := 0; i <= min(n, maxPageNumber); i++ {
		s.from += s.rows
		switch at := unit(int64(i), seed); {
		case at < read.EmptyPages:
			s.rows = 0
		case at < read.EmptyPages+read.ShortPages:
			s.rows = size / 2
		default:
			s.rows = size
		}
	}
	return s
}

// reachOf is how many rows of a listing its pages can show: Readings.MaxPages.
func reachOf(read *Readings, seed uint64, size int) int {
	if read.MaxPages == 0 {
		return math.MaxInt
	}
	return boundsOf(read, seed, read.MaxPages, size).from
}

// lastPage is the number of the page that shows the last of so many rows.
func lastPage(read *Readings, seed uint64, rows, size int) int {
	for n := 0; n < maxPageNumber; n++ {
		if at := boundsOf(read, seed, n, size); at.from+at.rows >= rows {
			return n
		}
	}
	return 0
}

// maxPageNumber bounds the arithmetic; no listing has that many pages.
const maxPageNumber = 1 << 22
