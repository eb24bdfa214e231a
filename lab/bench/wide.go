package main

import (
	"context"
	"errors"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// widenSQL gives each order a status of 992 characters, no two of them alike. It is its only text.
const widenSQL = `UPDATE orders SET status = (SELECT string_agg(md5((orders.id * i)::text), '')
FROM generate_series(1, 31) i)`

// wideRows measures the first load of rows of a kilobyte against COPY, in turn.
func wideRows(ctx context.Context, r *round) error {
	const name = "wide"
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	err = db.freshTable(ctx, name, r.large/25, widenSQL, "VACUUM (FULL, FREEZE, ANALYZE) orders", "CHECKPOINT")
	if err != nil {
		return err
	}
	c, err := db.copyOut(ctx, name, storefake.Orders)
	if err != nil {
		return err
	}
	l, err := loadTable(ctx, r, db, name, startEmbedded, nil)
	if err := errors.Join(err, db.drop(ctx, name)); err != nil {
		return err
	}
	what := "first load of " + count(r.large/25) + " orders of a kilobyte: "
	r.add(figure{what: what + "CPU of storestream a row", format: "%.2f us"}, micros(l.cpu)/l.rows)
	r.add(figure{what: what + "rate against psql COPY", format: "%.2f"}, c.elapsed.Seconds()/l.elapsed.Seconds())
	r.add(figure{what: what + "peak memory", format: "%.0f MiB"}, mebibytes(l.peak))
	return nil
}
