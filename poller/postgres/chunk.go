package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// errRetyped says that a result has other types than the table had: ALTER TABLE in the middle of a read.
var errRetyped = errors.New("the table's columns changed while it was read")

// chunk is what one transaction read: whole, in memory, the connection free again.
type chunk struct {
	clock   *clock
	rows    []schemas.Record
	rejects []schemas.Reject
	// from is where it began, end is the place of its last row; last says that no row came after it.
	from, end key
	last      bool
	// For the batch sizer: how many rows and bytes came, how long the first row took, how long all took.
	n, bytes     int
	first, total time.Duration
}

// chunkSize bounds a chunk.
type chunkSize struct{ rows, bytes int }

// readChunk reads the next rows of q after from, or with a nil q the clock alone. It calls answered when the
// first row has come.
func readChunk(
	ctx context.Context, db *DB, t *table, q query, from key, size chunkSize, answered func(),
) (*chunk, error) {
	c := &chunk{from: from, end: from}
	var err error
	if q == nil {
		c.clock, err = db.snapshot(ctx, catalogueDeadline, nil, nil)
		return c, err
	}
	s := q(t, from, size.rows)
	asked := time.Now()
	c.clock, err = db.snapshot(ctx, chunkDeadline, &s, func(rows *pgconn.ResultReader) error {
		defer func() { c.total = time.Since(asked) }()
		return c.decode(t, rows, size, func() { c.first = time.Since(asked); answered() })
	})
	return c, err
}

// decode reads rows as they come, straight from the connection's buffer into encoded records. Past size.bytes
// it reads on and keeps nothing. What it has kept is a prefix in the order of the key, so the next chunk goes
// on from its end.
func (c *chunk) decode(t *table, rows *pgconn.ResultReader, size chunkSize, first func()) error {
	if !t.matches(rows.FieldDescriptions()) {
		return errRetyped
	}
	full := false
	for rows.NextRow() {
		if c.n == 0 {
			first()
		}
		if full {
			continue
		}
		v := rows.Values()
		record, reject := t.decoder.Decode(v)
		if reject != nil {
			c.rejects = append(c.rejects, *reject)
			c.bytes += len(reject.Row)
		} else {
			if n := len(c.rows); n == cap(c.rows) { // a quarter is garbage that way, not four times the whole
				c.rows = slices.Grow(c.rows, max(min(3*n, size.rows-n), 16))
			}
			c.rows = append(c.rows, record)
			c.bytes += len(record.Value)
		}
		c.n++
		c.end = keyOfRow(t, v, c.end)
		full = c.bytes >= size.bytes
	}
	c.last = c.n < size.rows && !full
	return nil
}

// keyOfRow is the row's place. A NULL leaves that half as it was: updated_at is only NULL where id is the
// order.
func keyOfRow(t *table, v [][]byte, k key) key {
	if len(v[t.updatedAt]) == 8 {
		k.at = int64(binary.BigEndian.Uint64(v[t.updatedAt]))
	}
	if id, ok := idOf(v[t.id]); ok {
		k.id = id
	}
	return k
}

// batch holds the chunk's rows and settles nothing.
func (c *chunk) batch() *poller.Batch {
	return &poller.Batch{Rows: c.rows, Rejects: c.rejects, Settled: schemas.MinInstant}
}

// bad says that none of 20 rows or more can be published: something bigger is wrong than those rows.
func (c *chunk) bad() bool { return len(c.rows) == 0 && len(c.rejects) >= 20 }

// hold is what a bad chunk stops the resource with.
func (c *chunk) hold(table string) *poller.HoldError {
	reject := c.rejects[0]
	return &poller.HoldError{What: fmt.Sprintf("table %s: none of %d rows read together can be published, "+
		"the first because of %s (%s): something bigger is wrong than those rows; they stay unpublished, "+
		"and it goes on by itself once they are good", table, len(c.rejects), reject.Field, reject.Err)}
}
