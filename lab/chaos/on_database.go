package main

import (
	"context"
	"time"
)

// What happens to PostgreSQL and PgBouncer. PostgreSQL is never away for long. While it is, transactions of
// the shop wait that also write shipments. Those are read over REST, and REST promises nothing for rows that
// appear later than the overlap.
var databaseKinds = []*kind{
	{name: "PgBouncer killed", weight: 2, hits: thePooler, least: 0, most: 8 * time.Second, needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.pooler.bouncer.Start(ctx) }, s.around.pooler.bouncer.Kill()
		}},
	{name: "PgBouncer cut off", weight: 1, hits: thePooler, least: time.Second, most: 10 * time.Second,
		needs: overDatabase, do: cut(toPooler)},
	{name: "PgBouncer silent", weight: 2, hits: thePooler, least: 3 * time.Second, most: 20 * time.Second,
		needs: overDatabase,
		do:    poison(toPooler, toxic{"timeout", downstream, 0})},
	{name: "PgBouncer far away", weight: 1, hits: thePooler, least: 5 * time.Second, most: 15 * time.Second,
		needs:   overDatabase,
		details: func(d draw, _ *plan, e *event) { e.number = 20 + d.IntN(500) },
		do:      poison(toPooler, toxic{"latency", downstream, 0})},
	{name: "PostgreSQL restarted", weight: 2, hits: thePostgres, least: 0, most: 2 * time.Second,
		needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.postgres.Start(ctx) }, s.around.postgres.Shutdown()
		}},
	{name: "PostgreSQL crashed", weight: 2, hits: thePostgres, least: 0, most: 2 * time.Second,
		needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.postgres.Start(ctx) }, s.around.postgres.Kill()
		}},
	{name: "ALTER TABLE", weight: 2, hits: theTables, needs: overDatabase,
		details: func(d draw, _ *plan, e *event) { e.resources = []string{oneOf(d, "orders", "order_items")} },
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.load.alter(ctx, e.resources[0], e.number)
			return nil, nil
		}},
}
