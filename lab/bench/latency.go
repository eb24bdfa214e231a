package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// latencies measures from a commit in PostgreSQL to its row at a read_committed consumer.
func latencies(ctx context.Context, s *stage, t *table) error {
	for _, of := range []struct{ interval, target string }{{"1s", "p99 < 1.15 s"}, {"100ms", "p99 < 250 ms"}} {
		all, err := latency(ctx, s, of.interval, 100*s.runs)
		if err != nil {
			return err
		}
		middle, p99, most := all.median(), all.quantile(.99), all.quantile(1)
		s.say("interval %s: %d commits, median %.0f ms, p99 %.0f ms, most %.0f ms", of.interval, len(all), middle,
			p99, most)
		t.rows = append(t.rows, row{
			what:   "commit in PostgreSQL to a read_committed consumer, interval " + of.interval,
			target: of.target,
			median: fmt.Sprintf("p99 %.0f ms", p99),
			spread: fmt.Sprintf("median %.0f ms, most %.0f ms, of %d", middle, most, len(all)),
		})
	}
	return nil
}

// latency is the milliseconds that each of n commits took.
func latency(ctx context.Context, s *stage, interval string, n int) (all series, err error) {
	set := setting{resources: map[string]string{storefake.Orders: "interval: " + interval}}
	err = s.running(ctx, set, func(b *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		a, err := watchAll(ctx, b, s.shop.orders)
		if err != nil {
			return err
		}
		defer a.close()
		conn, err := pgx.Connect(ctx, s.pg.server.AdminDSN("postgres"))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		committed := map[int64]time.Time{}
		for i := range n {
			id := int64(1 + i*(s.shop.orders/n))
			if err := touchOrder(ctx, conn, id); err != nil {
				return err
			}
			committed[id] = time.Now()
			if err := wait.For(ctx, time.Duration(rand.IntN(80))*time.Millisecond); err != nil {
				return err
			}
		}
		for id, at := range committed {
			arrived, err := a.after(ctx, id, at.Add(-time.Second), 30*time.Second)
			if err != nil {
				return err
			}
			all.add(arrived.Sub(at).Seconds() * 1000)
		}
		return nil
	})
	return all, err
}

// starts measures how long a start and a handover take.
func starts(ctx context.Context, s *stage, t *table) error {
	var first, over series
	for _, of := range []struct {
		measure func(context.Context, *stage) (time.Duration, error)
		into    *series
	}{{firstRow, &first}, {handover, &over}} {
		for range s.runs {
			d, err := of.measure(ctx, s)
			if err != nil {
				return err
			}
			of.into.add(d.Seconds())
		}
	}
	s.say("start to first row %.2f s, handover %.2f s", first.median(), over.median())
	t.add("start to first published row (topics and subjects are made)", "< 1 s", first, "%.2f s")
	t.add("kill -9 to the first row of the other instance, default settings", "< 10 s", over, "%.2f s")
	return nil
}

// firstRow is from the start of storestream to its first row at a consumer that waits for it.
func firstRow(ctx context.Context, s *stage) (d time.Duration, err error) {
	db, shop, err := s.openShop(ctx)
	if err != nil {
		return 0, err
	}
	b, err := startEmbedded(ctx, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	a, err := watch(b)
	if err != nil {
		return 0, err
	}
	defer a.close()
	resources := map[string]string{storefake.Orders: ""}
	set := setting{broker: b, dsn: db.reader("postgres"), base: shop.base, resources: resources}
	st, err := s.program.start(set)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	err = until(ctx, time.Minute, "the first row", func() bool { return a.count() > 0 })
	return time.Since(st.began), err
}

// members waits until the group has so many members and is at rest.
func members(ctx context.Context, b *broker, n int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	return until(ctx, time.Minute, "the group of two", func() bool {
		groups, err := kadm.NewClient(cl).DescribeGroups(ctx, "storestream")
		return err == nil && len(groups["storestream"].Members) == n && groups["storestream"].State == "Stable"
	})
}

// handover kills the owner of two instances and changes a row at once.
func handover(ctx context.Context, s *stage) (d time.Duration, err error) {
	db, shop, err := s.openShop(ctx)
	if err != nil {
		return 0, err
	}
	set := setting{dsn: db.reader("postgres"), base: shop.base,
		resources: map[string]string{storefake.Orders: ""}}
	err = s.running(ctx, set, func(b *broker, one *stream) (err error) {
		if err := one.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		set.broker = b
		other, err := s.program.start(set)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Kill()) }()
		if err := other.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		a, err := watchAll(ctx, b, shop.orders)
		if err != nil {
			return err
		}
		defer a.close()
		if err := members(ctx, b, 2); err != nil {
			return err
		}
		owner := one
		if owned, err := other.metric(ctx, "storestream_owned"); err != nil {
			return err
		} else if owned > 0 {
			owner = other
		}
		d, err = takeover(ctx, s, owner, a)
		return err
	})
	return d, err
}

// takeover is from the owner's death to the first row that its successor publishes.
func takeover(ctx context.Context, s *stage, owner *stream, a *arrivals) (time.Duration, error) {
	conn, err := pgx.Connect(ctx, s.pg.server.AdminDSN("postgres"))
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if err := owner.Signal(syscall.SIGKILL); err != nil {
		return 0, err
	}
	killed := time.Now()
	if err := touchOrder(ctx, conn, 1); err != nil {
		return 0, err
	}
	arrived, err := a.after(ctx, 1, killed, time.Minute)
	return arrived.Sub(killed), err
}
