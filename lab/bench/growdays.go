package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// growingDays measures first loads of equally many rows that are spread over more and more days: over REST, which is read by day, and from PostgreSQL, which
// is not.
func growingDays(ctx context.Context, s *stage, f *figures) (err error) {
	n, days := 50_000, []int{1, 10, 100, 1000, 3650}
	if s.quick {
		n, days = 2_000, days[:3]
	}
	b, err := s.warmBroker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	for _, d := range days {
		if err := s.daysOf(ctx, f, b, n, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) daysOf(ctx context.Context, f *figures, b *broker, n, days int) (err error) {
	dsn, _, err := s.tableOver(ctx, n, days)
	if err != nil {
		return err
	}
	v, err := s.serve(ctx, "--users", strconv.Itoa(n), "--days", strconv.Itoa(days))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	name := fmt.Sprintf("days%d", days)
	rest, err := s.firstLoad(ctx, b, "users", setting{base: v.base, dsn: dsn, prefix: name + ".", group: name})
	if err != nil {
		return err
	}
	requests, err := v.answered(ctx)
	if err != nil {
		return err
	}
	sql, err := s.firstLoad(ctx, b, "orders", setting{base: v.base, dsn: dsn, prefix: name + "sql.", group: name + "sql"})
	if err != nil {
		return err
	}
	x := float64(days)
	f.add("days", "requests", strconv.Itoa(n)+" users over REST", x, float64(requests))
	f.add("days", "requests", "full pages, were there no days", x, float64(n)/1000)
	f.add("days", "s", "REST at 10 requests/s (reckoned)", x, float64(requests)/10)
	f.add("days", "s", "REST without a limit", x, rest.elapsed.Seconds())
	f.add("days", "s", "PostgreSQL", x, sql.elapsed.Seconds())
	s.say("%d days: %d requests, %.2f s, CPU %.2f s; PostgreSQL %.2f s, CPU %.2f s", days, requests, rest.elapsed.Seconds(), rest.cpu.Seconds(), sql.elapsed.Seconds(),
		sql.cpu.Seconds())
	return nil
}
