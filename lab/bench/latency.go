package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// groupNames are the consumer group of a stack's instances, and that of versions before it had the prefix.
var groupNames = []string{"storestream-store.", "storestream"}

// latencies measures the time from a commit in PostgreSQL to its row at a read_committed consumer, while few
// other rows change.
func latencies(ctx context.Context, r *round) error {
	commits := 200
	if r.quick {
		commits = 20
	}
	for _, of := range []struct{ interval, target string }{{"1s", "1,150 ms"}, {"100ms", "250 ms"}} {
		all, err := latencyAt(ctx, r, of.interval, commits)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("commit to a read_committed consumer, ten changes a second, interval %s: ", of.interval)
		r.add(figure{what: what + "median", format: "%.0f ms"}, all.median())
		r.add(figure{what: what + "p99", target: of.target, format: "%.0f ms"}, all.quantile(.99))
	}
	return nil
}

// latencyAt is the milliseconds that each of n commits took.
func latencyAt(ctx context.Context, r *round, interval string, n int) (all series, err error) {
	set := setting{resources: map[string]string{storefake.Orders: "interval: " + interval}}
	err = r.running(ctx, set, func(b *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		a, err := watchAll(ctx, b, r.shop.orders)
		if err != nil {
			return err
		}
		defer a.close()
		conn, err := pgx.Connect(ctx, r.pg.server.AdminDSN("postgres"))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		committed := map[int64]time.Time{}
		for i := range n {
			id := int64(1 + i*(r.shop.orders/n))
			if err := touchOrder(ctx, conn, id); err != nil {
				return err
			}
			committed[id] = time.Now()
			if err := wait.For(ctx, time.Duration(rand.IntN(200))*time.Millisecond); err != nil {
				return err
			}
		}
		all, err = a.lateness(ctx, committed)
		return err
	})
	return all, err
}

// starts measures how long a start and a handover take.
func starts(ctx context.Context, r *round) error {
	first, err := firstRow(ctx, r)
	if err != nil {
		return err
	}
	r.add(figure{what: "start to the first published row, topics and subjects made", target: "1 s",
		format: "%.2f s"}, first.Seconds())
	over, err := handoverTime(ctx, r)
	if err != nil {
		return err
	}
	r.add(figure{what: "kill -9 to the first row of the other instance, default settings", target: "10 s",
		format: "%.2f s"}, over.Seconds())
	return nil
}

// firstRow is from the start of storestream to its first row at a consumer that waits for it.
func firstRow(ctx context.Context, r *round) (d time.Duration, err error) {
	db, shop, err := r.openShop(ctx)
	if err != nil {
		return 0, err
	}
	b, err := startEmbedded(ctx, r.stage)
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
	st, err := r.program.start(set)
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
		groups, err := kadm.NewClient(cl).DescribeGroups(ctx, groupNames...)
		return err == nil && slices.ContainsFunc(groupNames, func(name string) bool {
			return len(groups[name].Members) == n && groups[name].State == "Stable"
		})
	})
}

// handoverTime kills the owner of two instances and changes a row at once.
func handoverTime(ctx context.Context, r *round) (d time.Duration, err error) {
	db, shop, err := r.openShop(ctx)
	if err != nil {
		return 0, err
	}
	set := setting{dsn: db.reader("postgres"), base: shop.base,
		resources: map[string]string{storefake.Orders: ""}}
	err = r.running(ctx, set, func(b *broker, one *stream) (err error) {
		if err := one.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		set.broker = b
		other, err := r.program.start(set)
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
		d, err = ownerKilled(ctx, r, owner, a)
		return err
	})
	return d, err
}

// ownerKilled is from the owner's death to the first row that its successor publishes.
func ownerKilled(ctx context.Context, r *round, owner *stream, a *arrivals) (time.Duration, error) {
	conn, err := pgx.Connect(ctx, r.pg.server.AdminDSN("postgres"))
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
