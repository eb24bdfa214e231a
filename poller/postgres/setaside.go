package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// One row may make a query fail: a view divides by zero, a text cannot be converted, a value on disk is
// broken. The rows around it are read, and the row becomes a dead letter. So after such an error (failures
// has them as alone) a read goes on carefully: by one row, then by two, four and so on.
//
// A limit is no bound. Without an index the server may compute all rows of the table before it sorts them,
// and fail because of any. So a careful transaction reads the keys of its rows first (bound), and then the
// rows up to the last of these keys.

// firstStamp and lastStamp are the limits of PostgreSQL's timestamps. -infinity and infinity lie outside.
const firstStamp, lastStamp = -211_813_488_000_000_000, 9_223_371_331_199_999_999

// errNoKey is the error of probe if the first row has no id. No place stands for it alone.
var errNoKey = &poller.BlockedError{What: "a row has no id (NULL), and the database cannot read a row at " +
	"the same place or behind it. Such a row is found by its id: give each row one"}

// isAboutRow returns true if the value of a row may be the cause of err.
func (r *chunkReader) isAboutRow(err error) bool {
	step, _ := r.db.diagnose(r.Resource.Table, err, 0)
	return step == alone
}

// probe reads the keys of the first rows of q between two places, and with them more, which is "" or columns
// after a comma. It returns the place of the last row before one without an id, or nil if there is no row.
// met is set if an earlier pass has met that row (pass.query).
func (r *chunkReader) probe(
	ctx context.Context, more string, q query, after key, until *key, limit int,
) (last *key, met bool, err error) {
	keys := *r.table
	keys.list = "id::bigint, updated_at" + more
	sql := q(&keys, after, until, limit)
	sql.locks = r.table.lockable
	tx, err := r.db.begin(ctx, r.table, &r.lineage, &sql)
	if err != nil {
		return nil, false, err
	}
	for tx.rows.NextRow() {
		row := tx.rows.Values()
		if len(row[0]) != 8 {
			if last == nil {
				err = errNoKey
			}
			return last, met, tx.close(err)
		}
		last = &key{math.MinInt64, int64(binary.BigEndian.Uint64(row[0]))}
		if len(row[1]) == 8 { // or its order is that of id
			last.at = int64(binary.BigEndian.Uint64(row[1]))
		}
		met = len(row) > 2 && row[2] == nil
	}
	return last, met, tx.close(nil)
}

// bound returns the place up to which the next rows of q are read: that of the last of limit rows. It is nil
// if there are none, or if the first has no id: then that row is read without a bound. If no query can read
// the first key, because the server computes all keys to sort them, search finds the place before the key
// that it cannot read, and the rows before that are read first.
func (r *chunkReader) bound(ctx context.Context, q query, after key, limit int) (*key, error) {
	last, _, err := r.probe(ctx, "", q, after, r.unread, limit)
	if r.unread != nil && last == nil && err == nil { // all rows before it were read
		r.unread = nil
		last, _, err = r.probe(ctx, "", q, after, nil, limit)
	}
	if errors.Is(err, errNoKey) {
		return nil, nil
	}
	if limit > 1 || !r.isAboutRow(err) {
		return last, err
	}
	at, first, failed := r.search(ctx, q, after)
	if failed != nil || first {
		return nil, cmp.Or(failed, err)
	}
	r.unread = &key{at.at, at.id - 1}
	last, _, err = r.probe(ctx, "", q, after, r.unread, limit)
	return last, err
}

// search returns the place of the first row after a place whose key the server cannot read: a query for the
// keys up to there fails. first is set if there is no row before it.
func (r *chunkReader) search(ctx context.Context, q query, after key) (at key, first bool, err error) {
	smallest := func(from, to int64, place func(int64) key) int64 {
		for from < to && err == nil {
			middle := from + int64(uint64(to-from)/2)
			until := place(middle)
			_, _, failed := r.probe(ctx, "", q, after, &until, 1)
			switch {
			case failed == nil:
				from = middle + 1
			case r.isAboutRow(failed):
				to = middle
			default:
				err = failed
			}
		}
		return to
	}
	at.at = smallest(max(after.at, firstStamp), lastStamp, func(i int64) key { return key{i, math.MaxInt64} })
	at.id = smallest(math.MinInt64+1, math.MaxInt64, func(i int64) key { return key{at.at, i} })
	if err != nil {
		return at, false, err
	}
	before, _, err := r.probe(ctx, "", q, after, &key{at.at, at.id - 1}, 1)
	return at, before == nil, err
}

// setAside returns a chunk with the dead letters of the next rows of q, as long as the server fails because
// of each: at most leastBad, which make a bad chunk. They show only the rows' keys: the table has the rest.
// The error is nil if the next row is good, or if there is none. If they are doubtful, the read ends behind
// leastBad rows: it would have to try each row of the table.
func (r *chunkReader) setAside(ctx context.Context, q query, after key) (*chunk, error) {
	c := &chunk{Batch: poller.Batch{Settled: schemas.MinInstant}, from: after, end: after, table: r.table}
	for len(c.Rejects) < leastBad {
		at, met, err := r.probe(ctx, "", q, c.end, r.unread, 1)
		searched := r.isAboutRow(err)
		if searched {
			var found key
			var first bool
			if found, first, err = r.search(ctx, q, c.end); first {
				at = &found
			}
		}
		if err != nil || at == nil {
			return c, err
		}
		reject, err := r.reject(ctx, q, c, *at)
		if err != nil || reject == nil {
			return c, err
		}
		reject.UpdatedAt, reject.Row = schemas.MinInstant, fmt.Appendf(nil, `{"id":%d}`, at.id)
		if stamp := at.instant(); stamp > schemas.MinInstant && !searched { // search does not find it in all orders
			reject.UpdatedAt, reject.Row = stamp, fmt.Appendf(nil, `{"id":%d,"updated_at":%q}`, at.id, stamp)
		}
		if !met {
			c.Rejects = append(c.Rejects, *reject)
		}
		c.clock, c.end = r.lineage.latest, *at
	}
	if c.doubtful {
		return c, c.blocked(r.table.plainName)
	}
	return c, nil
}

// reject returns the dead letter of the first row after c, which is at a place, or nil if it can be read.
//
// Between two transactions the row may go, and another may come before it. So reject asks for nothing but
// this place.
//
// The cause may lie in all rows: a view that expects one rate finds two, or raises an error in maintenance.
// Then another row fails too, and c becomes doubtful. And if the cause ends before that, no column fails
// afterwards.
func (r *chunkReader) reject(ctx context.Context, q query, c *chunk, at key) (*schemas.Reject, error) {
	after := c.end
	if at.id > math.MinInt64 {
		after = key{at.at, at.id - 1}
	}
	_, _, failed := r.probe(ctx, ", "+r.table.list, q, after, &at, 1)
	if !r.isAboutRow(failed) {
		return nil, failed
	}
	c.doubtful = !r.readsAnother(ctx, at.id) || c.doubtful
	pe, _ := errors.AsType[*pgconn.PgError](failed)
	x := &schemas.Reject{ID: at.id, HasID: true,
		Err: fmt.Sprintf("the database cannot read the row (SQLSTATE %s)", pe.Code)}
	for _, column := range r.table.columns {
		_, _, err := r.probe(ctx, ", "+pgx.Identifier{column.Name}.Sanitize(), q, after, &at, 1)
		if r.isAboutRow(err) {
			x.Field = column.Name
			return x, nil
		}
	}
	return nil, nil
}

// readsAnother returns true if the server reads the last good row, or, if that is not known, is gone, or has
// this id, any row with another id. That query has no order: without an index the server would compute all
// rows.
func (r *chunkReader) readsAnother(ctx context.Context, id int64) bool {
	other := fmt.Sprintf("id <> %d", id)
	for _, where := range []string{fmt.Sprintf("%s AND id = %d", other, r.good), other} {
		another := func(t *table, _ key, _ *key, _ int) statement {
			return statement{sql: "SELECT " + t.list + " FROM " + t.name + " WHERE " + where + " LIMIT 1"}
		}
		at, _, err := r.probe(ctx, ", "+r.table.list, another, beforeAll, nil, 1)
		if at != nil || err != nil {
			return err == nil
		}
	}
	return false
}
