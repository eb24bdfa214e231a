package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// How the service may answer over REST without failing, and begins and ceases to while it runs.
var answerKinds = []*kind{
	// A row is now as it is, now as it was. The lag leaves room for transactions that stay open, and for rows
	// that show late: together they stay within the overlap.
	{name: "answers from replicas:", weight: 4, hits: theAnswers, least: 5 * time.Second, most: 25 * time.Second,
		details: func(d draw, p *plan, e *event) {
			n, lag := 2+d.IntN(3), p.polling.partOfOverlap(d, .05, .3)
			e.how = fmt.Sprintf("%d, the last %s behind", n, lag)
			e.readings = func(r *storefake.Readings) { r.Replicas, r.ReplicaLag = n, lag }
		}, do: answer},
	// Answers that are older than the overlap show it.
	{name: "answers from a cache", weight: 3, hits: theAnswers, least: 5 * time.Second, most: 20 * time.Second,
		details: func(d draw, p *plan, e *event) {
			c := storefake.Cache{For: p.polling.partOfOverlap(d, .05, .3), Deaf: d.likely(.7), NoAge: d.likely(.5),
				NewDate: d.likely(.5)}
			if old := d.likely(.5); old {
				c.For = 3 * p.polling.restOverlap
				c.NewDate = c.NewDate && !c.NoAge
				c.NoAge = c.NoAge && !p.service.readings.NoDate
				e.length = d.between(20*time.Second, 45*time.Second)
			}
			e.how = fmt.Sprintf("of %+v", c)
			e.readings = func(r *storefake.Readings) { r.Cache = c }
		}, do: answer},
	{name: "field vanishes:", weight: 3, hits: theAnswers, least: 3 * time.Second, most: 15 * time.Second,
		details: func(d draw, p *plan, e *event) {
			resource := oneOf(d, listed(p)...)
			field := resource + "." + oneOf(d, fields[resource]...)
			e.how = field
			e.readings = func(r *storefake.Readings) { r.Without = append(r.Without, field) }
		}, do: withoutField},
	// A listing that ends too early shows only by a count of all rows.
	{name: "listings end early:", weight: 3, hits: theAnswers, least: 3 * time.Second, most: 15 * time.Second,
		needs: &need{"a service that counts all rows",
			func(p *plan) bool { return p.service.readings.Count == storefake.CountTotal }},
		details: func(d draw, _ *plan, e *event) {
			pages, rows := 1+d.IntN(3), oneOf(d, 0, 20, 100)
			e.how = fmt.Sprintf("after %d pages of %d rows", pages, rows)
			e.readings = func(r *storefake.Readings) {
				if r.MaxPages = pages; rows > 0 {
					r.MaxPage = rows
				}
			}
		}, do: answer},
	// A page number means other rows from one answer to the next.
	{name: "pages get shorter and longer:", weight: 3, hits: theAnswers, least: 5 * time.Second,
		most: 25 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			rows, turns := 15+d.IntN(150), 2+d.IntN(30)
			word := oneOf(d, storefake.PageGranted, storefake.PageAsked, storefake.PageAbsent)
			e.how = fmt.Sprintf("up to %d rows, another number after every %d requests, page_size %q", rows, turns,
				word)
			e.readings = func(r *storefake.Readings) { r.MaxPage, r.PageTurns, r.PageWord = rows, turns, word }
		}, do: answer},
	{name: "has_more is always true,", weight: 2, hits: theAnswers, least: 3 * time.Second,
		most: 15 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			end := oneOf(d, storefake.PastEndEmpty, storefake.PastEndLast, storefake.PastEndNotFound)
			e.how = fmt.Sprintf("past the end %q", end)
			e.readings = func(r *storefake.Readings) { r.HasMore, r.PastEnd = storefake.MoreAlways, end }
		}, do: answer},
	{name: "counts are estimates", weight: 1, hits: theAnswers, least: 3 * time.Second, most: 12 * time.Second,
		details: func(_ draw, _ *plan, e *event) {
			e.readings = func(r *storefake.Readings) { r.Count = storefake.CountEstimate }
		}, do: answer},
}

// answer plays the event's readings.
func answer(_ context.Context, s *stage, e event) (func() error, error) {
	before := s.around.fake.Readings()
	over := func() error {
		return s.around.fake.SetReadings(func(r *storefake.Readings) { *r = before })
	}
	return over, s.around.fake.SetReadings(e.readings)
}

// withoutField leaves a field out of a resource's rows. The resource must be blocked, and say so, and go on
// by itself when the field is back.
func withoutField(ctx context.Context, s *stage, e event) (func() error, error) {
	resource, field, _ := strings.Cut(e.how, ".")
	if m, _ := s.tail.lastMark(resource); !slices.Contains(m.Fields, field) {
		return nil, notPlayed(fmt.Sprintf("no complete pass has had %s yet, so it cannot be missed", e.how))
	}
	since := s.fleet.logged()
	over, err := answer(ctx, s, e)
	return func() error {
		told := func() (string, bool) { return s.fleet.blocked(ctx, resource, field, since) }
		if text, err := watch(ctx, told, func(context.Context) bool { return true }); err != nil {
			s.journal.fail(fmt.Errorf("%s has lost its field %s: %w", resource, field, err))
		} else {
			s.journal.say("%s", text)
		}
		return over()
	}, err
}

// partOfOverlap is a part of the overlap of REST.
func (p *polling) partOfOverlap(d draw, from, to float64) time.Duration {
	return time.Duration((from + (to-from)*d.Float64()) * float64(p.restOverlap)).Round(100 * time.Millisecond)
}

// listed are the resources that are read over REST.
func listed(p *plan) []string {
	if p.source == fromREST {
		return storefake.Names()
	}
	return []string{storefake.Products, storefake.Users, storefake.Shipments}
}

// fields that may vanish: the document's, but for those that say which row it is and when it changed.
var fields = map[string][]string{
	storefake.Orders:     {"user_id", "status", "total_amount"},
	storefake.OrderItems: {"order_id", "product_id", "sale_price", "quantity", "amount"},
	storefake.Products:   {"cost", "category", "name", "brand", "retail_price", "department", "sku"},
	storefake.Users:      {"email", "age", "city", "country", "latitude", "traffic_source"},
	storefake.Shipments:  {"order_id"},
}

// flicker changes n rows several times within a moment, each time to something that no row was before. The
// instants of a row's changes are a microsecond apart: in its topic they all have one updated_at.
func (l *load) flicker(ctx context.Context, resource string, n int) {
	field, value := changing(resource)
	for range n {
		id := l.anyID(resource)
		if err := l.touch(ctx, resource, id); err != nil {
			l.note(err)
			continue
		}
		for range 1 + rand.IntN(3) {
			err := l.alterRow(ctx, resource, id, func(r storefake.Row) {
				r[field] = value()
				r["updated_at"] = r.Time("updated_at").Add(time.Microsecond)
			})
			if err != nil {
				l.note(err)
			}
		}
	}
}

// changing returns a field of a resource, and a source of values for it that almost surely never repeat.
func changing(resource string) (field string, value func() any) {
	number := func() any { return 1_000_000 + rand.Int64N(1_000_000_000) }
	switch resource {
	case storefake.Orders:
		return "user_id", number
	case storefake.OrderItems:
		return "product_id", number
	case storefake.Users:
		return "age", number
	case storefake.Products:
		return "cost", func() any { return storefake.Money(fmt.Sprintf("%d.%04d", rand.IntN(1e6), rand.IntN(1e4))) }
	default:
		return "returned_at", func() any { return time.Unix(rand.Int64N(1_700_000_000), 0).UTC() }
	}
}
