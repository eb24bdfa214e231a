package postgres

import (
	"encoding/binary"
	"slices"
	"time"
)

// stream cuts the rows of one transaction into chunks. A row goes from the connection's buffer straight into
// an encoded record.
//
// A transaction whose rows are as wide as expected is one chunk, and its connection is free before the chunk
// is used. If the rows are wider, the server waits with the rest while a chunk is used. So the bytes in
// memory are bounded, and no row is read twice.
type stream struct {
	tx    *transaction // nil once it has ended
	table *table
	limit int // of the transaction's rows
	// until is the place where the rows end, or nil for the end of the table. step is set if the query ends
	// later.
	until *key
	step  bool

	more  bool // a row has come, and belongs to the next chunk
	count int  // rows so far
	end   key  // the place of the last row
	cut   bool // a row was too long, and was not read whole

	asked  time.Time     // when the query was sent
	first  time.Duration // until the first row came
	waited time.Duration // while the caller used chunks
}

// next returns the next chunk. If the transaction fails, the chunk has the rows that came before: they are in
// the order of the key, and each is good by itself.
func (s *stream) next() (*chunk, error) {
	c := &chunk{clock: s.tx.clock, table: s.table, from: s.end, end: s.end}
	columns := len(s.table.columns)
	for s.more && !c.full() {
		v := s.tx.rows.Values()
		record, reject, cut := s.table.decode(v[:columns])
		if reject != nil {
			s.cut = s.cut || cut
			c.rejects = append(c.rejects, *reject)
			c.bytes += len(reject.Row)
		} else {
			if n := len(c.rows); n == cap(c.rows) { // a quarter is garbage that way, not four times the whole
				c.rows = slices.Grow(c.rows, max(min(3*n, s.limit-n), 16))
			}
			c.rows = append(c.rows, record)
			if len(v) > columns {
				c.final = append(c.final, isTrue(v[columns]))
			}
			c.bytes += len(record.Value)
		}
		// A NULL keeps that half of the place: updated_at is NULL only if rows come in the order of id.
		if at := v[s.table.updatedAt]; len(at) == 8 {
			c.end.at = int64(binary.BigEndian.Uint64(at))
		}
		if id, ok := idOf(v[s.table.id]); ok {
			c.end.id = id
		}
		s.count++
		s.more = s.tx.rows.NextRow()
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
