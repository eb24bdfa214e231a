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

// tooFarError says that the server cancelled a statement that looks at many rows for few.
type tooFarError struct{ err error }

func (e *tooFarError) Error() string { return e.err.Error() }
func (e *tooFarError) Unwrap() error { return e.err }

// errSwapped says that the table's name leads to another table than the catalogue's, or that row security was
// switched on or off.
var errSwapped = errors.New("the table was replaced while it was read")

// errRetyped says that a result has other types than the table had: ALTER TABLE in the middle of a read.
var errRetyped = errors.New("the table's columns changed while it was read")

// chunk is a part of what one transaction read, in memory.
type chunk struct {
	clock   *clock
	table   *table
	rows    []schemas.Record
	final   []bool // of each row, if it was asked for: see filter.final
	rejects []schemas.Reject
	// from is where it began, end is the place of its last row; last says that no row came after it.
	from, end key
	last      bool
	bytes     int // of its rows, encoded
	// identity is set only by look, which reads the clock alone.
	identity identity
}

// chunkSize bounds what one transaction reads.
type chunkSize struct {
	rows  int // of the transaction: its LIMIT
	bytes int // of one chunk, about
}

// chunkCost is what the rows of one transaction took, for the chunkSizer.
type chunkCost struct {
	rows, bytes int
	// first is how long the first row took, total how long all took, without the time in which others had
	// them.
	first, total time.Duration
	cut          bool // a row was too long, and was not read whole
}

// readChunks reads the next rows of q after from in one transaction, or with a nil q the clock alone and
// whose it is. It calls answered when the first row has come.
//
// hand gets the rows as one chunk, when the transaction is over and the connection free. But nobody knows
// beforehand how wide rows are. If they turn out wider than those before, hand gets several chunks, all but
// the last one while the server waits with the rest: so no row is read twice, and memory is bounded by bytes.
func readChunks(
	ctx context.Context, db *DB, t *table, q query, from key, size chunkSize, answered func(),
	hand func(*chunk) error,
) (chunkCost, error) {
	if q == nil {
		c, err := look(ctx, db, t)
		if err != nil {
			return chunkCost{}, err
		}
		return chunkCost{}, hand(c)
	}
	d := chunkDecoder{table: t, size: size, hand: hand, answered: answered,
		chunk: &chunk{table: t, from: from, end: from}}
	s := q(t, from, size.rows)
	s.locks = t.lockable
	asked := time.Now()
	_, err := db.snapshot(ctx, chunkDeadline, t, &s, func(c *clock, rows *pgconn.ResultReader) error {
		d.chunk.clock = c
		err := d.decode(rows, asked)
		d.cost.total = time.Since(asked) - d.waited
		return err
	})
	if s.far {
		d.cost.first = 0 // it was looking for rows
	}
	switch {
	case err == nil:
		err = hand(d.chunk)
	case s.far && remedyFor(err) == smaller:
		err = &tooFarError{err}
	}
	return d.cost, err
}

// What may have become of a table without a sign in the clock: another schema of the search_path has a table
// of the name, a table that was alone has children, another one leads elsewhere. To find the last out takes
// the server 0.4 ms, so a table that is alone is not asked.
const (
	becameSQL   = "SELECT to_regclass($2) IS DISTINCT FROM to_regclass($1), "
	childrenSQL = "(SELECT relhassubclass FROM pg_class WHERE oid = to_regclass($1))"
)

// look reads the clock, the table's present state and its identity. Its error may be that of isElsewhere.
func look(ctx context.Context, db *DB, t *table) (*chunk, error) {
	c := &chunk{table: t, identity: identity{Table: t.oid, Schema: t.schema, Kind: t.kind}}
	q := statement{sql: belowSQL + becameSQL + elsewhereSQL + ", " + leadsToSQL}
	if t.alone {
		q.sql = becameSQL + childrenSQL + ", NULL"
	}
	if t.identified {
		q.sql += ", " + historySQL
	} else {
		q.sql += ", NULL, NULL"
	}
	q.sql += ", " + identitySQL
	q.param(oidText, []byte(t.plainName))
	q.param(oidText, []byte(t.bareName))
	var err error
	c.clock, err = db.snapshot(ctx, catalogueDeadline, t, &q, func(_ *clock, rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			v := rows.Values()
			var err error
			switch {
			case isTrue(v[0]):
				err = errSwapped
			case !t.alone:
				err = isElsewhere(t.plainName, v[1])
			case isTrue(v[1]):
				err = errSwapped
			}
			if err == nil {
				err = c.identity.take(v[2:])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}

// chunkDecoder makes chunks of the rows of one transaction.
type chunkDecoder struct {
	table    *table
	size     chunkSize
	hand     func(*chunk) error
	answered func()

	chunk  *chunk // in hand
	cost   chunkCost
	waited time.Duration // in hand
}

// decode reads rows as they come, straight from the connection's buffer into encoded records. They come in
// the order of the key, and each is good by itself: a chunk holds if the statement fails later.
func (d *chunkDecoder) decode(rows *pgconn.ResultReader, asked time.Time) error {
	if !d.table.matches(rows.FieldDescriptions()) {
		return errRetyped
	}
	c := d.chunk
	for rows.NextRow() {
		if d.cost.rows == 0 {
			d.cost.first = time.Since(asked)
			d.answered()
		}
		if d.full() {
			if err := d.handOver(); err != nil {
				return err
			}
			c = d.chunk
		}
		v, before := rows.Values(), c.bytes
		record, reject, cut := d.table.decode(v[:len(d.table.columns)])
		if reject != nil {
			d.cost.cut = d.cost.cut || cut
			c.rejects = append(c.rejects, *reject)
			c.bytes += len(reject.Row)
		} else {
			if n := len(c.rows); n == cap(c.rows) { // a quarter is garbage that way, not four times the whole
				c.rows = slices.Grow(c.rows, max(min(3*n, d.size.rows-n), 16))
			}
			c.rows = append(c.rows, record)
			if len(v) > len(d.table.columns) {
				c.final = append(c.final, isTrue(v[len(d.table.columns)]))
			}
			c.bytes += len(record.Value)
		}
		d.cost.rows++
		d.cost.bytes += c.bytes - before
		c.end = keyOfRow(d.table, v, c.end)
	}
	c.last = d.cost.rows < d.size.rows
	return nil
}

// full says that no further row belongs into the chunk in hand. Somewhat more than its size may go in: else
// every second chunk would have a small one behind it. And bad rows may be more, so that it shows when all of
// them are bad.
func (d *chunkDecoder) full() bool {
	c := d.chunk
	if len(c.rows) == 0 && len(c.rejects) < leastBad && c.bytes < 4*d.size.bytes {
		return false
	}
	return c.bytes >= d.size.bytes+d.size.bytes/2
}

// handOver hands the chunk in hand over, and begins the next one.
func (d *chunkDecoder) handOver() error {
	began, c := time.Now(), d.chunk
	err := d.hand(c)
	d.waited += time.Since(began)
	d.chunk = &chunk{clock: c.clock, table: c.table, from: c.end, end: c.end}
	return err
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
	return &poller.Batch{Rows: c.rows, Rejects: c.rejects, Final: c.final, Settled: schemas.MinInstant}
}

// leastBad is how many rows in a row that cannot be published are no accident.
const leastBad = 20

// bad says that none of leastBad rows or more can be published: something bigger is wrong than those rows.
func (c *chunk) bad() bool { return len(c.rows) == 0 && len(c.rejects) >= leastBad }

// hold is what a bad chunk stops the resource with.
func (c *chunk) hold(table string) *poller.HoldError {
	reject := c.rejects[0]
	return &poller.HoldError{What: fmt.Sprintf("table %s: none of %d rows read together can be published, "+
		"the first because of %s (%s): something bigger is wrong than those rows; they stay unpublished, "+
		"and it goes on by itself once they are good", table, len(c.rejects), reject.Field, reject.Err)}
}
