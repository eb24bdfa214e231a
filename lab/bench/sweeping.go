package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// sweeping measures a sweep of a large table and a verify of it, against one psql COPY of the same table.
func sweeping(ctx context.Context, r *round) error {
	err := sweepOrders(ctx, r, r.large)
	if !r.big {
		return err
	}
	return errors.Join(err, sweepOrders(ctx, r, 5*r.large), sweepUsers(ctx, r, 5*r.day))
}

func sweepOrders(ctx context.Context, r *round, n int) error {
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	name, err := db.tableOf(ctx, n)
	if err != nil {
		return err
	}
	c, err := db.copyOut(ctx, name, storefake.Orders)
	if err != nil {
		return err
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 1s"}}
	return afterLoad(ctx, r, set, func(st *stream) error {
		of := fmt.Sprintf(" of %s orders: ", count(n))
		took, _, err := runCommand(ctx, r, st, "sweep", storefake.Orders, "--yes", "--wait")
		if err != nil {
			return err
		}
		r.add(figure{"sweep" + of + "peak memory of run", "128 MiB", "%.0f MiB", n == r.large},
			mebibytes(st.peak.Load()))
		r.add(figure{what: "sweep" + of + "time against psql COPY", target: "2.0", format: "%.2f"},
			took.Seconds()/c.elapsed.Seconds())
		took, peak, err := runCommand(ctx, r, st, "verify", storefake.Orders)
		r.add(figure{what: "verify" + of + "peak memory", target: "128 MiB", format: "%.0f MiB"}, mebibytes(peak))
		r.add(figure{what: "verify" + of + "time against psql COPY", target: "2.0", format: "%.2f"},
			took.Seconds()/c.elapsed.Seconds())
		return err
	})
}

// sweepUsers measures a sweep of n users, whom only REST has.
func sweepUsers(ctx context.Context, r *round, n int) (err error) {
	v, err := startService(ctx, r.stage, "--users", strconv.Itoa(n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	set := setting{base: v.base, resources: map[string]string{storefake.Users: "interval: 1s"}}
	return afterLoad(ctx, r, set, func(st *stream) error {
		took, _, err := runCommand(ctx, r, st, "sweep", storefake.Users, "--yes", "--wait")
		of := fmt.Sprintf("sweep of %s users over REST: ", count(n))
		r.add(figure{what: of + "peak memory of run", target: "128 MiB", format: "%.0f MiB"},
			mebibytes(st.peak.Load()))
		r.add(figure{what: of + "time", target: "works", format: "%.0f s"}, took.Seconds())
		return err
	})
}

// afterLoad calls do with a storestream that has taken over from one that made the first load: its memory is
// not that of the load.
func afterLoad(ctx context.Context, r *round, set setting, do func(*stream) error) error {
	return r.running(ctx, set, func(b *broker, first *stream) (err error) {
		if err := first.awaitReady(ctx, 15*time.Minute); err != nil {
			return err
		}
		if err := first.Stop(); err != nil {
			return err
		}
		set.broker = b
		second, err := r.program.start(set)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, second.Kill()) }()
		if err := second.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		return do(second)
	})
}

// runCommand runs another command of the program beside a running one, by the same configuration.
func runCommand(ctx context.Context, r *round, beside *stream, args ...string) (
	took time.Duration, peak int64, err error) {
	c, err := spawn(r.dir, r.name(args[0]), r.program.path, environment(),
		append(args, "--config", beside.config)...)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Kill()) }()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	err = c.done(ctx)
	return time.Since(c.began), c.peak.Load(), err
}
