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
)

// latencies measures from a commit in PostgreSQL to its row at a read_committed consumer.
func latencies(ctx context.Context, s *stage, t *table) error {
	if err := s.shop(ctx); err != nil {
		return err
	}
	for _, of := range []struct {
		interval, target string
	}{{"1s", "p99 < 1.15 s"}, {"100ms", "p99 < 250 ms"}} {
		all, err := s.latency(ctx, of.interval, 100*s.runs)
		if err != nil {
			return err
		}
		s.say("interval %s: %d commits, median %.0f ms, p99 %.0f ms, most %.0f ms", of.interval, len(all), all.median(), all.quantile(.99), all.quantile(1))
		t.rows = append(t.rows, row{what: "commit in PostgreSQL to a read_committed consumer, interval " + of.interval, target: of.target,
			median: fmt.Sprintf("p99 %.0f ms", all.quantile(.99)), spread: fmt.Sprintf("median %.0f ms, most %.0f ms, of %d", all.median(), all.quantile(1), len(all))})
	}
	return nil
}

func (s *stage) latency(ctx context.Context, interval string, n int) (all series, err error) {
	b, err := s.embedded(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	st, err := s.start(setting{broker: b, resources: map[string]string{"orders": "interval: " + interval}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
		return nil, err
	}
	a, err := watch(b)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if err := until(ctx, 2*time.Minute, "reading the topic", func() bool { return a.count() >= s.service.orders }); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, s.postgres.AdminDSN("postgres"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	committed := map[int64]time.Time{}
	for i := range n {
		id := int64(1 + i*(s.service.orders/n))
		if err := change(ctx, conn, id); err != nil {
			return nil, err
		}
		committed[id] = time.Now()
		if err := rest(ctx, time.Duration(rand.IntN(80))*time.Millisecond); err != nil {
			return nil, err
		}
	}
	for id, at := range committed {
		if err := until(ctx, 30*time.Second, "a changed row", func() bool { t, ok := a.of(id); return ok && t.After(at.Add(-time.Second)) }); err != nil {
			return nil, err
		}
		seen, _ := a.of(id)
		all.add(seen.Sub(at).Seconds() * 1000)
	}
	return all, nil
}

func change(ctx context.Context, conn *pgx.Conn, id int64) error {
	_, err := conn.Exec(ctx, "UPDATE orders SET user_id = user_id + 1, updated_at = now() WHERE id = $1", id)
	return err
}

// starts measures how long a start and a handover take.
func starts(ctx context.Context, s *stage, t *table) error {
	if err := s.shop(ctx); err != nil {
		return err
	}
	var first, over series
	for range s.runs {
		d, err := s.firstRow(ctx)
		if err != nil {
			return err
		}
		first.add(d.Seconds())
	}
	for range s.runs {
		d, err := s.handover(ctx)
		if err != nil {
			return err
		}
		over.add(d.Seconds())
	}
	s.say("start to first row %.2f s, handover %.2f s", first.median(), over.median())
	t.add("start to first published row (topics and subjects are made)", "< 1 s", first, "%.2f s")
	t.add("kill -9 to the first row of the other instance, default settings", "< 10 s", over, "%.2f s")
	return nil
}

func (s *stage) firstRow(ctx context.Context) (d time.Duration, err error) {
	b, err := s.embedded(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	a, err := watch(b)
	if err != nil {
		return 0, err
	}
	defer a.close()
	st, err := s.start(setting{broker: b, resources: map[string]string{"orders": ""}})
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
func (s *stage) handover(ctx context.Context) (d time.Duration, err error) {
	b, err := s.embedded(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	var pair [2]*stream
	for i := range pair {
		if pair[i], err = s.start(setting{broker: b, resources: map[string]string{"orders": ""}}); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, pair[i].Kill()) }()
		if err := pair[i].awaitReady(ctx, 5*time.Minute); err != nil {
			return 0, err
		}
	}
	a, err := watch(b)
	if err != nil {
		return 0, err
	}
	defer a.close()
	if err := until(ctx, 2*time.Minute, "reading the topic", func() bool { return a.count() >= s.service.orders }); err != nil {
		return 0, err
	}
	if err := members(ctx, b, len(pair)); err != nil {
		return 0, err
	}
	owner := pair[0]
	if owned, err := pair[1].metric(ctx, "storestream_owned"); err != nil {
		return 0, err
	} else if owned > 0 {
		owner = pair[1]
	}
	conn, err := pgx.Connect(ctx, s.postgres.AdminDSN("postgres"))
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if err := owner.Signal(syscall.SIGKILL); err != nil {
		return 0, err
	}
	killed := time.Now()
	if err := change(ctx, conn, 1); err != nil {
		return 0, err
	}
	if err := until(ctx, time.Minute, "the handover", func() bool { at, ok := a.of(1); return ok && at.After(killed) }); err != nil {
		return 0, err
	}
	at, _ := a.of(1)
	return at.Sub(killed), nil
}
