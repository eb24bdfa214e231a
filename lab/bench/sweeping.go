package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// sweeping measures a sweep of a large table and a verify of it, against one psql COPY of the same table.
func sweeping(ctx context.Context, r *round) error {
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	name, err := db.tableOf(ctx, r.large)
	if err != nil {
		return err
	}
	c, err := db.copyOut(ctx, name, storefake.Orders)
	if err != nil {
		return err
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 1s"}}
	return r.running(ctx, set, func(b *broker, first *stream) (err error) {
		if err := first.awaitReady(ctx, 10*time.Minute); err != nil {
			return err
		}
		if err := first.Stop(); err != nil { // its memory is that of the first load
			return err
		}
		set.broker = b
		second, err := r.program.start(set)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, second.Kill()) }()
		if err := second.awaitReady(ctx, time.Minute); err != nil {
			return err
		}
		of := fmt.Sprintf(" of %s orders: ", count(r.large))
		took, _, err := runCommand(ctx, r, second, "sweep", storefake.Orders, "--yes", "--wait")
		if err != nil {
			return err
		}
		r.add(figure{"sweep" + of + "peak memory of run", "128 MiB", "%.0f MiB", true},
			mebibytes(second.peak.Load()))
		r.add(figure{what: "sweep" + of + "time against psql COPY", target: "3", format: "%.2f"},
			took.Seconds()/c.elapsed.Seconds())
		took, peak, err := runCommand(ctx, r, second, "verify", storefake.Orders)
		r.add(figure{what: "verify" + of + "peak memory", target: "128 MiB", format: "%.0f MiB"}, mebibytes(peak))
		r.add(figure{what: "verify" + of + "time against psql COPY", target: "3", format: "%.2f"},
			took.Seconds()/c.elapsed.Seconds())
		return err
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
