package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

const (
	// leastBlocks is the size of the smallest table that is loaded in the order of its blocks. A smaller one is
	// a chunk or two.
	leastBlocks = 256
	firstBlocks = 64
	// mostBlocks limits the blocks of a transaction, 128 MiB, in which many versions may be dead.
	mostBlocks = 1 << 14
	// mostRows limits the rows of a range. The poller publishes them with the place behind them in one
	// transaction. Otherwise an owner that dies between two of them would leave rows that its successor has to
	// remember, and among records in no order of time these are not found without many others.
	mostRows = 20_000
)

// load reads the rows stamped before place.Before, in the order of their table's blocks. doc.go has the
// argument.
type load struct {
	file  uint32          // the number of the table's file
	place *watermark.Load // behind the last chunk
	// settles is the place behind the last chunk before a bad one. The watermark gets it. Nil means that a
	// successor begins the load.
	settles *watermark.Load
	blocks  int64 // of the next transaction
}

// heapSQL asks for the number of blocks to load of the table $1, if a range of them can be read by itself and
// no row is stamped before $2. The access method heap has the oid 2.
const heapSQL = `SELECT CASE WHEN relam = 2 AND current_setting('server_version_num')::int >= 140000 %s
	THEN pg_relation_size(oid) / current_setting('block_size')::int ELSE 0 END FROM pg_class WHERE oid = $1`

// findLoad returns the load with which p goes on, or begins, or nil. Its error may be a *poller.LostError.
func findLoad(ctx context.Context, p *pass, r *chunkReader, of poller.Request) (*load, error) {
	l, mayBegin, lost := loadOf(p, of)
	switch {
	case lost != nil:
		return nil, lost
	case !mayBegin:
		return l, nil
	}
	q, nothingBefore := statement{locks: true}, ""
	q.param(pgtype.OIDOID, p.table.oid)
	if p.from > schemas.MinInstant {
		nothingBefore = "AND NOT EXISTS (SELECT FROM " + p.table.name + " WHERE updated_at < " +
			q.param(stamp, microsOf(p.from)) + ")"
	}
	q.sql = fmt.Sprintf(heapSQL, nothingBefore)
	for failures := 0; ; {
		blocks := int64(0)
		_, err := r.db.ask(ctx, p.table, &r.lineage, &q, &blocks)
		switch {
		case err == nil && blocks >= leastBlocks:
			return newLoad(p, blocks), nil
		case err == nil, cancels(r, err): // the search for a row: the pass keeps to (updated_at, id)
			return nil, nil
		}
		if err = r.retry(ctx, &failures, nil, err); err != nil {
			return nil, err
		}
	}
}

// cancels returns true if the server has cancelled a statement for its time or size.
func cancels(r *chunkReader, err error) bool {
	step, _ := r.db.diagnose(r.Resource.Table, err, 0)
	return step == smaller
}

// loadOf returns the load with which p goes on, or nil. mayBegin is set if p may begin with one.
func loadOf(p *pass, of poller.Request) (l *load, mayBegin bool, lost *poller.LostError) {
	t, at := p.table, of.Load
	inBlocks := t.alone && t.lockable && t.noFloor == "" && p.clock.file != 0
	switch {
	case at == nil, at.Block == at.Blocks && !p.undated: // none, or it has ended
		later := loadsBefore(p) > p.from.Add(p.horizons.overlap)
		return nil, later && inBlocks && of.Cursor == nil && of.Floor == nil, nil
	case !inBlocks || at.File != fileOf(p):
		return nil, false, rewritten(p)
	}
	return &load{file: p.clock.file, place: at, settles: at, blocks: firstBlocks}, false, nil
}

// newLoad returns a load of so many blocks. Their number was asked for after p's clock.
func newLoad(p *pass, blocks int64) *load {
	place := &watermark.Load{File: fileOf(p), Blocks: blocks, Before: loadsBefore(p)}
	return &load{file: p.clock.file, place: place, blocks: firstBlocks}
}

// loadsBefore returns the time before which all rows belong to a load that begins. No record of the load may
// have the record time of a later row, and that has milliseconds.
func loadsBefore(p *pass) schemas.Instant {
	return schemas.InstantOfMillis(p.horizons.reach(p.clock.xmin).Millis())
}

// fileOf identifies the file of p's table.
func fileOf(p *pass) string { return fmt.Sprintf("%s/%d", p.identity.System, p.clock.file) }

// rewritten returns the error for rows that may lie in other blocks now: the load begins again.
func rewritten(p *pass) *poller.LostError {
	return &poller.LostError{From: p.settled, Why: "the table was rewritten or replaced while it was loaded"}
}

// chunks yields the rows of the blocks that are left. Each chunk but one of a part of a block goes on at the
// next block.
func (l *load) chunks(ctx context.Context, r *chunkReader) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		for failures := 0; l.place.Block < l.place.Blocks; {
			if l.blocks > 1 && l.place.After == nil {
				c, err := l.readRange(ctx, r, &failures)
				if err != nil {
					yield(nil, err)
					return
				}
				if c != nil && !yield(l.moveBehind(c, r.rows()), nil) {
					return
				}
				continue
			}
			l.blocks, failures = 1, 0
			for c, err := range r.chunks(ctx, l.query, l.after()) {
				if err != nil {
					yield(nil, err)
					return
				}
				last := c.last // of the block
				if !yield(l.moveBehind(c, r.rows()), nil) {
					return
				}
				if last {
					break
				}
			}
		}
	}
}

// readRange reads the next blocks. If they fail, or have more rows than a chunk, it returns nil, and the next
// blocks are fewer. Its error ends the read.
func (l *load) readRange(ctx context.Context, r *chunkReader, failures *int) (c *chunk, err error) {
	r.careful = 0
	tx, err := r.open(ctx, l.query, beforeAll)
	if err == nil {
		c, err = r.next(tx)
		_ = tx.close(nil) // it is open if there are more rows
	}
	switch {
	case err != nil:
		err = r.retry(ctx, failures, tx, err)
	case c.last && c.count() <= mostRows:
		r.grow()
		*failures = 0
		return c, nil
	}
	l.blocks = max(l.blocks/4, 1)
	return nil, err
}

// query asks for the rows of the next blocks. Only those of a single block come in an order, that of
// (updated_at, id): to sort them costs a fifth of the read.
func (l *load) query(t *table, after key, until *key, limit int) (s statement) {
	order, end := "", min(l.place.Block+l.blocks, l.place.Blocks)
	where := fmt.Sprintf("%[1]s.ctid >= '(%[2]d,0)' AND %[1]s.ctid < '(%[3]d,0)' AND updated_at < %[4]s",
		t.plainName, l.place.Block, end, s.param(stamp, microsOf(l.place.Before)))
	if l.blocks == 1 {
		order = " ORDER BY updated_at, id"
		where += " AND (updated_at, id) > " + s.place(after)
		if until != nil {
			where += " AND (updated_at, id) <= " + s.place(*until)
		}
	}
	s.sql = fmt.Sprintf("SELECT %s FROM %s WHERE %s%s LIMIT %s", t.list, t.name, where, order,
		s.param(pgtype.Int8OID, int64(limit)))
	return s
}

// after returns the place of the last row that was read of the next block.
func (l *load) after() key {
	if l.place.After == nil {
		return beforeAll
	}
	return key{l.place.After[0], l.place.After[1]}
}

// moveBehind moves the load behind c, and chooses how many blocks come next. They are to give three quarters
// of a chunk, and of limit rows.
func (l *load) moveBehind(c *chunk, limit int) *chunk {
	next := *l.place
	if !c.last { // of a block
		next.After = &[2]int64{c.end.at, c.end.id}
		l.place = &next
		return c
	}
	next.Block, next.After = min(next.Block+l.blocks, next.Blocks), nil
	if l.place.After == nil { // otherwise the block is more than a chunk
		share := max(float64(c.size)/chunkBytes, float64(c.count())/float64(min(limit, mostRows))) * 4 / 3
		l.blocks = max(1, min(int64(float64(l.blocks)/max(share, 0.25)), mostBlocks))
	}
	c.last, l.place = next.Block == next.Blocks, &next
	return c
}

// publish makes c's batch move the watermark. inBlocks is set for rows of blocks, good if no bad chunk came
// before, and ends if no part of the load comes after this one.
func (l *load) publish(c *chunk, inBlocks, good, ends bool) {
	if inBlocks {
		c.Final = slices.Repeat([]bool{true}, len(c.Rows))
	}
	if good {
		l.settles = l.place
	}
	if c.Load = l.settles; good && ends && c.last {
		c.Load, c.Settled = nil, l.place.Before
	}
}
