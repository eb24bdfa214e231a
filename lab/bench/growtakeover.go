package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// growingTakeover measures how long a start takes by what there is to remember: rows that changed within the overlap, which are read back from Kafka and
// again from PostgreSQL.
func growingTakeover(ctx context.Context, s *stage, f *figures) (err error) {
	n, changed := 1_000_000, []int{0, 1_000, 10_000, 100_000, 1_000_000}
	if s.quick {
		n, changed = 20_000, changed[:3]
	}
	dsn, admin, err := s.tableOf(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.dropTable(ctx, n)) }()
	b, err := s.someBroker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	set := setting{dsn: dsn, broker: b}
	if _, err := s.firstLoad(ctx, b, "orders", set); err != nil {
		return err
	}
	set.resources = map[string]string{"orders": ""}
	for _, m := range changed {
		took, peak, err := s.takeover(ctx, set, admin, m)
		if err != nil {
			return err
		}
		f.add("takeover", "s", "start to the end of the first pass", float64(m), took.Seconds())
		f.add("takeover", "MiB", "peak memory of the new instance", float64(m), mebi(peak))
		s.say("takeover with %d rows in the overlap: %.2f s, %.0f MiB", m, took.Seconds(), mebi(peak))
	}
	return nil
}

// takeover changes m rows, has them published, stops that instance and starts another.
func (s *stage) takeover(ctx context.Context, set setting, admin string, m int) (took time.Duration, peak int64, err error) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx)
	first, err := s.start(set)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, first.Kill()) }()
	if err := first.awaitReady(ctx, time.Minute); err != nil {
		return 0, 0, err
	}
	// What the measurement before this one has changed lies outside the overlap now.
	if _, err := conn.Exec(ctx, "UPDATE orders SET updated_at = updated_at - interval '1 day' WHERE updated_at > now() - interval '10 minutes'"); err != nil {
		return 0, 0, err
	}
	if _, err := conn.Exec(ctx, "UPDATE orders SET updated_at = now() WHERE id <= $1", m); err != nil {
		return 0, 0, err
	}
	if err := first.awaitPublished(ctx, m); err != nil {
		return 0, 0, err
	}
	if err := first.Stop(); err != nil {
		return 0, 0, err
	}
	second, err := s.start(set)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, second.Kill()) }()
	if err := second.awaitReady(ctx, time.Minute); err != nil {
		return 0, 0, err
	}
	return time.Since(second.began), second.peak.Load(), nil
}
