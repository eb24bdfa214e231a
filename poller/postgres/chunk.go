package postgres

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/schemas"
)

// chunk is what one transaction read: whole, in memory, the connection free again.
type chunk struct {
	clock    clock
	rows     []schemas.Record
	rejects  []schemas.Reject
	n, bytes int
	// end is the place of the last row; last says that nothing came after it.
	end  key
	last bool
	// first is how long the first row took to come, total how long all took.
	first, total time.Duration
	// answered is called when the first row has come.
	answered func()
}

// bad says that every row of 20 or more cannot be published: something bigger is wrong than those rows.
func (c *chunk) bad() bool { return len(c.rows) == 0 && len(c.rejects) >= 20 }

// take reads rows as they come, straight from the connection's buffer into encoded records. Past maxBytes it reads on and keeps nothing: what was
// kept is a prefix in the order of the keyset, and the next chunk goes on from its end.
func (c *chunk) take(t *table, rows *pgconn.ResultReader, limit, maxBytes int, started time.Time) error {
	if !t.matches(rows.FieldDescriptions()) {
		return errRetyped
	}
	full := false
	for rows.NextRow() {
		if c.n == 0 {
			c.first = time.Since(started)
			c.answered()
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
				c.rows = slices.Grow(c.rows, max(min(3*n, limit-n), 16))
			}
			c.rows = append(c.rows, record)
			c.bytes += len(record.Value)
		}
		c.n++
		c.end = keyOfRow(t, v, c.end)
		full = c.bytes >= maxBytes
	}
	c.total = time.Since(started)
	c.last = c.n < limit && !full
	return nil
}

// keyOfRow is the row's place. A NULL (only where updated_at is not the order) leaves that half as it was.
func keyOfRow(t *table, v [][]byte, k key) key {
	if len(v[t.updatedAt]) == 8 {
		k.at = int64(binary.BigEndian.Uint64(v[t.updatedAt]))
	}
	if id, ok := idOf(v[t.id]); ok {
		k.id = id
	}
	return k
}
