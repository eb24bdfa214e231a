package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// scatterSQL writes the orders in another order than that of updated_at.
var scatterSQL = []string{"CREATE INDEX scattered ON orders (hashint8(id))", "CLUSTER orders USING scattered",
	"DROP INDEX scattered", "VACUUM (FREEZE, ANALYZE) orders", "CHECKPOINT"}

// scattered measures first loads of tables whose rows lie in no order of time. The large one takes minutes.
// It is measured once, and against the same rows in order only with --big.
func scattered(ctx context.Context, r *round) error {
	err := scatteredOf(ctx, r, r.large*2/5, "ordered", "scattered")
	if err != nil || r.number > 0 {
		return err
	}
	if r.big {
		return scatteredOf(ctx, r, r.large, "ordered", "scattered")
	}
	return scatteredOf(ctx, r, r.large, "scattered")
}

// scatteredOf measures first loads of n orders in each of these tables, in turn, and a takeover after that of
// the scattered one.
func scatteredOf(ctx context.Context, r *round, n int, tables ...string) error {
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	if r.number%2 == 1 {
		slices.Reverse(tables)
	}
	took := map[string]float64{}
	for _, name := range tables {
		var further []string
		if name == "scattered" {
			further = scatterSQL
		}
		if err := db.freshTable(ctx, name, n, further...); err != nil {
			return err
		}
		err := onTable(ctx, r, name, func(b *broker, st *stream) error {
			took[name] = time.Since(st.began).Seconds()
			if name == "ordered" {
				return nil
			}
			return takeoverAfter(ctx, r, db.reader(name), b, st, n)
		})
		if err := errors.Join(err, db.drop(ctx, name)); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("first load of %s orders in no order of time", count(n))
	r.add(figure{what: what, format: "%.1f s"}, took["scattered"])
	if len(tables) == 1 {
		return nil
	}
	r.add(figure{what: what + ", against the same in order", target: "1.15", format: "%.2f"},
		took["scattered"]/took["ordered"])
	return nil
}

// takeoverAfter measures a start after the load of n orders that st has ended, and a quiet week.
func takeoverAfter(ctx context.Context, r *round, dsn string, b *broker, st *stream, n int) (err error) {
	err = errors.Join(st.Stop(), repeatMark(ctx, b, storefake.Orders, r.quietMarks()))
	if err != nil {
		return err
	}
	set := setting{dsn: dsn, broker: b, resources: map[string]string{storefake.Orders: "interval: 100ms"}}
	second, err := r.program.start(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Kill()) }()
	if err := second.awaitReady(ctx, 5*time.Minute); err != nil {
		return err
	}
	what := fmt.Sprintf("start to ready after a quiet week, %s orders loaded in no order of time", count(n))
	r.add(figure{what: what, target: "2 s", format: "%.2f s"}, time.Since(second.began).Seconds())
	return nil
}
