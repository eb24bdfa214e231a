package postgres

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/storestream/storestream/schemas"
)

// stream cuts the rows of one transaction into chunks. A row goes from the connection's buffer straight into
// an encoded record.
//
// A transaction whose rows are as wide as expected is one chunk, and its connection is free before the chunk
// is used. If the rows are wider, the server waits with the rest while a chunk is used. So the bytes in
// memory are bounded, and no row is read twice.
type stream struct {
	reader *chunkReader
	tx     *transaction // nil once it has ended
	table  *table
	limit  int // of the transaction's rows
	// until is the place where the rows end, or nil for the end of the table. step is set if the query ends
	// later.
	until *key
	step  bool

	more  bool // a row has come, and belongs to the next chunk
	count int  // rows so far
	end   key  // the place of the last row
}

// next returns the next chunk. If the transaction fails, the chunk has the rows that came before: they are in
// the order of the key, and each is good by itself.
func (s *stream) next() (*chunk, error) {
	c := &chunk{clock: s.tx.clock, table: s.table, from: s.end, end: s.end}
	columns := len(s.table.columns)
	for s.more && !c.full() {
		v := s.tx.rows.Values()
		values, added := v[:columns], v[columns:] // added by cutLong and for filter.final
		var record schemas.Record
		var reject *schemas.Reject
		if s.table.cuts && added[0] != nil {
			reject = s.table.decoder.TooLong(values, leftOut(added[0], columns), maxRow)
			s.reader.longRows = time.Now().Add(guardTime)
		} else {
			record, reject = s.table.decoder.Decode(values)
		}
		if reject != nil {
			c.rejects = append(c.rejects, *reject)
			c.bytes += len(reject.Row)
			if reject.HasID {
				c.end.id = reject.ID
			}
		} else {
			if n := len(c.rows); n == cap(c.rows) { // a quarter is garbage that way, not four times the whole
				c.rows = slices.Grow(c.rows, max(min(3*n, s.limit-n), 16))
			}
			c.rows = append(c.rows, record)
			c.bytes += len(record.Value)
			c.end.id = record.ID
			if n := len(added); n > 1 || n == 1 && !s.table.cuts {
				c.final = append(c.final, added[n-1][0] != 0)
			}
		}
		// A NULL keeps the place: updated_at is NULL only if rows come in the order of id.
		if at := values[s.table.updatedAt]; len(at) == 8 {
			c.end.at = int64(binary.BigEndian.Uint64(at))
		}
		s.count++
		s.more = s.tx.rows.NextRow()
	}
	if n := c.count(); n > 0 {
		s.reader.width = max(c.bytes/n, 1)
	}
	s.end = c.end
	if s.more {
		return c, nil
	}
	if err := s.close(); err != nil || s.count >= s.limit {
		return c, err
	}
	c.last = !s.step
	if s.until != nil {
		c.end = *s.until
	}
	return c, nil
}

// close ends the transaction, if it has not ended.
func (s *stream) close() error {
	if s == nil || s.tx == nil {
		return nil
	}
	tx := s.tx
	s.tx = nil
	return tx.close(nil)
}
