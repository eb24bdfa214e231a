package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

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

// heapSQL asks for the number of blocks to load of a table, if a range of them can be read by itself and no
// row is stamped before the beginning. The access method heap has the oid 2.
const heapSQL = `SELECT CASE WHEN relam = 2 AND current_setting('server_version_num')::int >= 140000
		AND current_setting('enable_tidscan')::boolean
		AND NOT EXISTS (SELECT FROM %s WHERE updated_at < %[2]s AND %[2]s > '-infinity')
	THEN pg_relation_size(oid) / current_setting('block_size')::int ELSE 0 END FROM pg_class WHERE oid = %[3]s`

// findLoad makes p go on with the load in hand, or begin one. If the server refuses or cancels the question
// for the number of blocks, the pass keeps to the order (updated_at, id). The error may be a
// *poller.LostError.
func (p *pass) findLoad(ctx context.Context, r *chunkReader, of poller.Request) error {
	mayBegin, err := p.resumeLoad(of)
	if err != nil || !mayBegin {
		return err
	}
	q := statement{locks: true}
	q.sql = fmt.Sprintf(heapSQL, p.table.name, q.param(stamp, microsOf(p.from)),
		q.param(pgtype.OIDOID, p.table.oid))
	for failures := 0; ; {
		blocks := int64(0)
		_, err := r.db.ask(ctx, p.table, &r.lineage, &q, &blocks)
		if step, _ := r.db.diagnose(r.Resource.Table, err, 0); err == nil || step != again {
			if blocks >= leastBlocks {
				p.beginLoad(blocks)
			}
			return nil
		}
		if err = r.retry(ctx, &failures, nil, err); err != nil {
			return err
		}
	}
}

// resumeLoad makes p go on with the load of a request, if it has one. mayBegin is set if p may begin a load.
// The error is a *poller.LostError.
func (p *pass) resumeLoad(of poller.Request) (mayBegin bool, err error) {
	at := of.Load
	inBlocks := p.table.lockable && p.table.noFloor == "" && p.clock.file != 0
	switch {
	case at == nil, at.Block == at.Blocks && !p.undated: // none, or it has ended
		later := p.loadsBefore() > p.from.Add(p.horizons.overlap)
		return later && inBlocks && of.Cursor == nil && of.Floor == nil, nil
	case !inBlocks: // batch compares the file with each chunk
		return false, rewritten(p)
	}
	p.load, p.moved = at, at
	return false, nil
}

// beginLoad makes p load so many blocks. Their number was asked for after p's clock.
func (p *pass) beginLoad(blocks int64) {
	p.load = &watermark.Load{File: p.file(p.clock), Blocks: blocks, Before: p.loadsBefore()}
}

// loadsBefore returns the time before which all rows belong to a load that begins. No record of the load may
// have the record time of a later row, and that has milliseconds. None may be in the future by our clock: a
// takeover in the middle would have to read back all of them (futureRows).
func (p *pass) loadsBefore() schemas.Instant {
	before := min(p.horizons.reach(p.clock.xmin), schemas.InstantOf(p.clock.asked))
	return schemas.InstantOfMillis(before.Millis())
}

// file identifies the file in which c showed p's table.
func (p *pass) file(c *clock) string { return fmt.Sprintf("%s/%d", p.identity.System, c.file) }

// rewritten returns the error for rows that may lie in other blocks now: the load begins again.
func rewritten(p *pass) error {
	return &poller.LostError{From: p.settled, Why: "the table was rewritten or replaced while it was loaded"}
}

// chunks yields the rows of the part in hand. batch moves the load behind each chunk of blocks.
func (p *pass) chunks(ctx context.Context, r *chunkReader) iter.Seq2[*chunk, error] {
	if part := p.parts[0]; !part.blocks {
		return r.chunks(ctx, p.query(r, part), part.after)
	}
	return func(yield func(*chunk, error) bool) {
		for failures := 0; p.load.Block < p.load.Blocks; {
			if p.blocks > 1 && p.load.After == nil {
				c, err := p.readRange(ctx, r, &failures)
				if (c != nil || err != nil) && !yield(c, err) {
					return
				}
				continue
			}
			p.blocks, failures = 1, 0
			for c, err := range r.chunks(ctx, p.rangeQuery, p.readTo()) {
				if err != nil && r.careful == 1 && ctx.Err() == nil {
					c, err = p.unreadable(r, err)
				}
				last := err != nil || c.last // of the block
				if !yield(c, err) {
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
func (p *pass) readRange(ctx context.Context, r *chunkReader, failures *int) (c *chunk, err error) {
	r.unfiltered, r.careful = false, 0
	tx, err := r.open(ctx, p.rangeQuery, beforeAll)
	if err == nil {
		c, err = r.next(tx)
		_ = tx.close(nil) // it is open if there are more rows
	}
	switch {
	case err != nil:
		p.cut = p.blocks
		err = r.retry(ctx, failures, tx, err)
	case c.last && c.count() <= mostRows:
		r.grow()
		*failures = 0
		return c, nil
	}
	p.blocks = max(p.blocks/4, 1)
	return nil, err
}

// unreadable returns the bad chunk for a block whose page is broken, so that the server reads no row of it.
// If many blocks are broken, or err is known to have another cause, it returns err.
func (p *pass) unreadable(r *chunkReader, err error) (*chunk, error) {
	p.broken++
	if known := errors.As(err, new(*poller.LostError)) || errors.As(err, new(*poller.BlockedError)); known ||
		p.broken > leastBad {
		return nil, err
	}
	reject := schemas.Reject{Field: fmt.Sprintf("block %d", p.load.Block), Err: err.Error()}
	return &chunk{Batch: poller.Batch{Rejects: []schemas.Reject{reject}}, clock: r.lineage.latest,
		table: p.table, from: beforeAll, last: true, doubtful: true}, nil
}

// rangeQuery asks for the rows of the next blocks. Only those of a single block come in an order, that of
// (updated_at, id): to sort them costs a fifth of the read.
func (p *pass) rangeQuery(t *table, after key, until *key, limit int) (s statement) {
	order, end := "", min(p.load.Block+int64(p.blocks), p.load.Blocks)
	where := fmt.Sprintf("%[1]s.ctid >= '(%[2]d,0)' AND %[1]s.ctid < '(%[3]d,0)' AND updated_at < %[4]s",
		t.plainName, p.load.Block, end, s.param(stamp, microsOf(p.load.Before)))
	if p.blocks == 1 {
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

// readTo returns the place of the last row that was read of the next block.
func (p *pass) readTo() key {
	if p.load.After == nil {
		return beforeAll
	}
	return key{p.load.After[0], p.load.After[1]}
}

// moveBehind moves the load behind c, and chooses how many blocks come next. They are to give three quarters
// of a range's limits. c is the last chunk if no block is left.
func (p *pass) moveBehind(c *chunk) {
	next := *p.load
	switch {
	case !c.last: // more of the block is left
		next.After = &[2]int64{c.end.at, c.end.id}
	case next.After == nil: // otherwise the block is more than a chunk
		share := max(float64(c.size)/chunkBytes, float64(c.count())/mostRows) * 4 / 3
		next.Block += int64(p.blocks)
		p.blocks = min(int(float64(p.blocks)/max(share, 0.25)), grown(p.blocks, p.cut), mostBlocks)
	default:
		next.Block, next.After = next.Block+1, nil
	}
	next.Block, p.blocks = min(next.Block, next.Blocks), max(p.blocks, 1)
	c.last, p.load = next.Block == next.Blocks, &next
}
