package main

import (
	"context"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// What happens to the rows, beside the shop's traffic and the late commits that load makes all the time.
var rowKinds = []*kind{
	{name: "bulk UPDATE of", weight: 3, hits: theTables,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.amount = []string{oneOf(d, storefake.Names()...)}, oneOf(d, .1, .5, 1)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.load.bulkUpdate(ctx, e.resources[0], e.amount)
			return nil, nil
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
		needs: func(p *plan) bool { return p.service.readings.Delay == 0 },
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
}
