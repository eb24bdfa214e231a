package main

import (
	"context"
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// What happens to the rows, beside the shop's traffic and the late commits that load makes all the time.
var rowKinds = []*kind{
	{name: "bulk UPDATE of", weight: 3, hits: theTables,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.amount = []string{oneOf(d, storefake.Names()...)}, oneOf(d, .1, .5, 1)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return nil, s.load.bulkUpdate(ctx, e.resources[0], e.amount)
		}},
	{name: "burst of traffic", weight: 2, hits: nothing, least: 3 * time.Second, most: 10 * time.Second,
		do: func(_ context.Context, s *stage, _ event) (func() error, error) {
			s.around.fake.StartTraffic(5 * s.plan.traffic)
			return func() error { s.around.fake.StartTraffic(s.plan.traffic); return nil }, nil
		}},
	{name: "rows that break the contract:", weight: 2, hits: nothing, least: 4 * time.Second,
		most: 15 * time.Second,
		details: func(d draw, p *plan, e *event) {
			names := []string{storefake.Products, storefake.Users, storefake.Shipments}
			if p.source == fromREST {
				names = storefake.Names()
			}
			e.resources, e.number = []string{oneOf(d, names...)}, 3+d.IntN(15)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			heal := s.load.garble(e.resources[0], e.number)
			return func() error { return heal(ctx) }, nil
		}},
	// A row that is not readable before its time has come would outlast the run.
	{name: "rows from the future", weight: 1, hits: nothing,
		needs: &need{"a service that shows rows at once",
			func(p *plan) bool { return p.service.readings.Delay == 0 }},
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.number = []string{oneOf(d, storefake.Names()...)}, 1+d.IntN(5)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.load.foresee(ctx, e.resources[0], e.number)
			return nil, nil
		}},
	{name: "updated_at going back", weight: 1, hits: nothing, least: 3 * time.Second, most: 4 * time.Second,
		needs: overDatabase,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.number = []string{oneOf(d, storefake.Orders, storefake.OrderItems)}, 1+d.IntN(3)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			back := s.load.renew(ctx, e.resources[0], e.number)
			return func() error { back(ctx); return nil }, nil
		}},
	{name: "rows changing again within a moment:", weight: 4, hits: nothing, least: 2 * time.Second,
		most: 10 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.number = []string{oneOf(d, storefake.Names()...)}, 2+d.IntN(6)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.load.flicker(ctx, e.resources[0], e.number)
			return func() error { s.load.flicker(ctx, e.resources[0], e.number); return nil }, nil
		}},
	{name: "rows gone for a while:", weight: 2, hits: nothing, least: 2 * time.Second, most: 10 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.number = []string{oneOf(d, storefake.Names()...)}, 1+d.IntN(5)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			back := gone(ctx, s, e.resources[0], e.number)
			return func() error { return back(ctx) }, nil
		}},
	// Only a sweep finds these. It is asked for when all is repaired.
	{name: "rows changed without a new updated_at:", weight: 3, hits: nothing, needs: overDatabase,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.number = []string{oneOf(d, storefake.Names()...)}, 1+d.IntN(8)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return nil, s.load.changeSilently(ctx, e.resources[0], e.number)
		}},
	{name: "wide rows:", weight: 3, hits: nothing, least: 3 * time.Second, most: 15 * time.Second,
		details: func(d draw, p *plan, e *event) {
			e.resources = []string{oneOf(d, withText...)}
			e.number = oneOf(d, 100_000, 300_000, 1_000_000, 3_000_000)
			e.count = 1 + d.IntN(wideBytes/e.number)
			e.how = fmt.Sprintf("%d of %d kB in", e.count, e.number/1000)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			_, shorten := widen(ctx, s, e.resources[0], e.count, e.number)
			return func() error { return shorten(ctx) }, nil
		}},
	{name: "row too large for its topic:", weight: 1, hits: nothing, least: 3 * time.Second,
		most:    8 * time.Second,
		details: func(d draw, _ *plan, e *event) { e.resources = []string{oneOf(d, withText...)} },
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return tooLarge(ctx, s, e.resources[0])
		}},
}

const (
	// wideBytes is the sum of the wide rows of one mishap.
	wideBytes = 8_000_000
	// tooWide is more than a record may have.
	tooWide = 20_000_000
)

// withText are the resources whose rows can be wide.
var withText = []string{storefake.Orders, storefake.Products, storefake.Users}

// widen inserts n rows with a text of size bytes. shorten makes it a short one.
func widen(ctx context.Context, s *stage, resource string, n, size int) (ids []int64,
	shorten func(context.Context) error) {
	if s.around.readsTable(resource) {
		return s.job.widen(ctx, n, size)
	}
	return s.load.widen(ctx, resource, n, size)
}

// tooLarge inserts a row that no topic takes. There must be a dead letter of it; the judge sees to it that
// the row is published, and the letter gone, when the row is short again.
func tooLarge(ctx context.Context, s *stage, resource string) (func() error, error) {
	ids, shorten := widen(ctx, s, resource, 1, tooWide)
	return func() error {
		for _, id := range ids {
			wide := func(context.Context) bool {
				_, there := s.around.fake.Row(resource, id)
				return there || s.around.readsTable(resource)
			}
			letter := func() (string, bool) {
				return "no dead letter", s.tail.hasLetter(fmt.Sprintf("%s/%d", resource, id))
			}
			if _, err := watch(ctx, letter, wide); err != nil {
				s.journal.fail(fmt.Errorf("%s %d is too large for its topic: %w", resource, id, err))
			}
		}
		return shorten(ctx)
	}, nil
}

// gone makes n rows vanish that the topic has as they are, and have not changed lately. back brings them back
// as they were. A reader finds them deleted in between, and afterwards sees no trace of it.
func gone(ctx context.Context, s *stage, resource string, n int) (back func(context.Context) error) {
	var rows []storefake.Row
	for range n {
		id := s.load.anyID(resource)
		row, there := s.around.fake.Row(resource, id)
		published, known := s.tail.find(resource, id)
		if !there || !known || published.millis != s.around.shown(resource, row.Time("updated_at")).UnixMilli() {
			continue
		}
		work, cancel := context.WithTimeout(ctx, lockPatience)
		err := s.around.fake.Do(work, func(tx *storefake.Tx) error {
			now, there, err := tx.Get(work, resource, id)
			if err != nil || !there || !now.Time("updated_at").Equal(row.Time("updated_at")) {
				return err
			}
			rows = append(rows, row)
			return tx.Delete(work, resource, id)
		})
		cancel()
		if err != nil {
			s.load.note(err)
		}
	}
	return func(ctx context.Context) error {
		for _, row := range rows {
			if err := bringBack(ctx, s, resource, row); err != nil {
				return err
			}
		}
		return nil
	}
}

// bringBack inserts a row again, unless it never went.
func bringBack(ctx context.Context, s *stage, resource string, row storefake.Row) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := s.around.fake.Do(ctx, func(tx *storefake.Tx) error {
			if _, there, err := tx.Get(ctx, resource, row.ID()); err != nil || there {
				return err
			}
			_, err := tx.Insert(ctx, resource, row)
			s.excuses.returned(resource, row.ID())
			return err
		})
		if err == nil || !until(ctx, time.Now().Add(200*time.Millisecond)) {
			return err
		}
	}
}
