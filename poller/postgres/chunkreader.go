package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

const (
	// chunkBytes is the size of a chunk in bytes of encoded rows. A chunk may exceed it by one row. The chunk
	// before it may be waiting for the poller, which publishes a third one. A larger chunk gains nothing: it is
	// some ten thousand rows. (Of 2M orders, 1.5 MiB peaked at 75 to 84 MiB, 1.25 MiB at 72 to 78, at the same
	// rate.)
	chunkBytes = 1 << 20
	// transactionBytes limits the rows that one transaction asks for, in bytes. Without an index on updated_at,
	// the server sorts the whole table for each transaction, so few are better. But the more chunks a
	// transaction gives, the longer it waits for their consumer, and the more is left to read when the consumer
	// wants no more.
	transactionBytes = 4 << 20
	defaultMaxRows   = 100_000
	// firstWidth is the number of bytes that a row is expected to have before one was read.
	firstWidth = 100
	// longRun separates failures: a time limit has cut a transaction that fails later than that, with any error
	// code. Poolers count their limits in seconds.
	longRun = time.Second
	// mostFailures is the number of consecutive failures after which Read returns the error, and the poller
	// waits.
	mostFailures = 6
	firstPause   = 50 * time.Millisecond // doubled by each failure
)

// Unanswered is the text for SourceConfig.Doing while the database has not begun to answer. With an index a
// poll is answered within milliseconds. But if its database has gone, a pooler keeps a statement waiting
// (PgBouncer: two minutes). A locked table or a cut connection gives no sign either.
const Unanswered = "waiting for the database to answer"

// chunkReader reads chunks. It lives as long as its Source.
type chunkReader struct {
	SourceConfig
	db      *DB
	lineage lineage

	// table is as the catalogue had it at one moment. Nil makes the next describe ask the server.
	table   *table
	missing string // the missing columns that were logged last
	// before identifies the table that was read before. Nil means that it is not known.
	before *watermark.Identity
	// had are the schema's fields that the table has had, according to this process and the watermark.
	had []string

	limit int   // the limit of rows for the next transaction
	cut   int   // the limit of the last transaction that was cut, or 0
	width int   // bytes of a row of the last chunk
	good  int64 // the id of the last good row, or 0
	// unfiltered is set if the server has cancelled a statement of this read before a row came. The filter of
	// pass.query may be the cause.
	unfiltered bool
	// careful, if not zero, limits the rows of a transaction further: a row of this read has made the server
	// fail. It is 1 after such a failure, and doubles with each good transaction.
	careful int
	// unread is the place up to which careful transactions can read keys. Nil means all.
	unread *key
	// longRows is the time until which rows may come that are too long to be read whole.
	longRows time.Time
}

func newChunkReader(db *DB, c SourceConfig) *chunkReader {
	c.MaxRows, c.Log = cmp.Or(c.MaxRows, defaultMaxRows), cmp.Or(c.Log, zap.NewNop())
	if c.Doing == nil {
		c.Doing = func(string) {}
	}
	return &chunkReader{SourceConfig: c, db: db, limit: c.MaxRows, width: firstWidth}
}

// chunks yields the rows of q after a place, in chunks. It chooses how much one transaction reads. If a
// transaction fails, it tries again behind the rows that have come, as often as that may help, and yields the
// error that is left.
//
// The chunks' clocks follow one another in one history of the database. At least one chunk comes before the
// end, maybe an empty one.
func (r *chunkReader) chunks(ctx context.Context, q query, after key) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		var tx *transaction
		defer func() { _ = tx.close(nil) }() // only a caller that wants no more leaves it open
		r.unfiltered, r.careful, r.unread = false, 0, nil
		for failures := 0; ; {
			var err error
			for tx, err = r.open(ctx, q, after); err == nil && tx.conn != nil; {
				var c *chunk
				if c, err = r.next(tx); err != nil && c.end == after {
					break
				}
				after, failures = c.end, 0
				if !yield(c, nil) || c.last {
					return
				}
			}
			if err == nil {
				r.grow()
				r.careful = min(2*r.careful, r.MaxRows)
				continue
			}
			if tx != nil && r.careful > 0 && tx.limit == 1 && r.isAboutRow(err) {
				c, failed := r.setAside(ctx, q, after)
				if c.end != after {
					after, failures = c.end, 0
					if !yield(c, nil) {
						return
					}
					if failed == nil {
						continue
					}
				}
				err = cmp.Or(failed, err)
			}
			if err = r.retry(ctx, &failures, tx, err); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// open asks for the rows of q after a place, and waits for the first row. If the server fails, only begun and
// limit of the transaction are set.
func (r *chunkReader) open(ctx context.Context, q query, after key) (*transaction, error) {
	r.Doing(Unanswered)
	defer r.Doing("")
	t, err := r.describe(ctx)
	if err != nil {
		return nil, err
	}
	if time.Now().Before(r.longRows) {
		t = t.cutLong()
	}
	limit, begun := r.rows(), time.Now()
	var until *key
	if r.careful > 0 {
		if until, err = r.bound(ctx, q, after, limit); err != nil {
			return &transaction{begun: begun, limit: limit}, err
		}
	}
	sql := q(t, after, until, limit)
	sql.locks = t.lockable
	tx, err := r.db.begin(ctx, t, &r.lineage, &sql)
	if err != nil {
		return &transaction{begun: begun, limit: limit}, err
	}
	if !t.matches(tx.rows.FieldDescriptions()) {
		return nil, tx.close(errChanged)
	}
	tx.table, tx.begun, tx.limit, tx.until, tx.end = t, begun, limit, until, after
	tx.more = tx.rows.NextRow()
	return tx, nil
}

// next returns the next chunk of a transaction. A row goes from the connection's buffer straight into an
// encoded record.
//
// The server waits with the rest of a transaction's rows while a chunk is used. So the bytes in memory are
// bounded however wide the rows are, and no row is read twice.
//
// If the transaction fails, the chunk has the rows that came before, except the newest one: they are in the
// order of the key, and each is good by itself. The newest one is read again, because no good message has
// come behind it. A pooler that cuts a statement may write its error into the middle of a row, as PgBouncer
// 1.18 does. Then the error's bytes stand in the row's values.
func (r *chunkReader) next(tx *transaction) (*chunk, error) {
	c := &chunk{Batch: poller.Batch{Settled: schemas.MinInstant}, clock: tx.clock, table: tx.table, from: tx.end,
		end: tx.end}
	sure := *c // without the newest row
	columns := len(tx.table.columns)
	for tx.more && c.size < chunkBytes {
		sure = *c
		v := tx.rows.Values()
		values, added := v[:columns], v[columns:] // added by cutLong and pass.query
		var record schemas.Record
		var reject *schemas.Reject
		if tx.table.cuts && added[0] != nil {
			reject = tx.table.decoder.TooLong(values, leftOut(added[0], columns), maxRow)
			r.longRows = time.Now().Add(guardTime)
		} else {
			record, reject = tx.table.decoder.Decode(values)
		}
		if tx.table.cuts {
			added = added[1:]
		}
		met := len(added) > 0 && added[0] == nil
		switch {
		case reject != nil:
			if reject.HasID {
				c.end.id = reject.ID
			}
			if !met {
				c.Rejects = append(c.Rejects, *reject)
				c.size += len(reject.Row)
			}
		case met:
			c.end.id = record.ID
		default:
			if n := len(c.Rows); n == cap(c.Rows) { // a quarter is garbage that way, not four times the whole
				c.Rows = slices.Grow(c.Rows, max(min(3*n, tx.limit-n), 16))
			}
			c.Rows = append(c.Rows, record)
			c.size += len(record.Value)
			c.end.id, r.good = record.ID, record.ID
			if len(added) > 0 {
				c.Final = append(c.Final, added[0][0] != 0)
			}
		}
		// A NULL keeps the place: updated_at is NULL only if rows come in the order of id.
		if at := values[tx.table.updatedAt]; len(at) == 8 {
			c.end.at = int64(binary.BigEndian.Uint64(at))
		}
		tx.count++
		tx.more = tx.rows.NextRow()
	}
	if n := c.count(); n > 0 {
		r.width = max(c.size/n, 1)
	}
	tx.end, c.Nulls = c.end, tx.table.decoder.Nulls()
	if tx.more {
		return c, nil
	}
	if err := tx.close(nil); err != nil {
		tx.count = max(tx.count-1, 0)
		return &sure, err
	}
	switch {
	case tx.count >= tx.limit: // more may follow, also before until: rows have come since it was found
	case tx.until != nil:
		c.end = *tx.until
	default:
		c.last = true
	}
	return c, nil
}

// rows returns the limit of rows for the next transaction.
func (r *chunkReader) rows() int {
	return max(min(r.limit, cmp.Or(r.careful, r.limit), transactionBytes/r.width), 1)
}

// grow raises the limit after a good transaction.
func (r *chunkReader) grow() { r.limit = min(grown(r.limit, r.cut), r.MaxRows) }

// grown returns the size of the transaction after a good one. It doubles, but from half the size that was cut
// up to that size it grows slowly: twice as many after 45 transactions. Beyond it the cause of the cut is
// over.
func grown(size, cut int) int {
	if size < cut && 2*size >= cut {
		return size + size/64 + 1
	}
	return 2 * size
}

// retry prepares another try after err. tx is the transaction that failed, or nil if no row has come. retry
// returns the error that ends the read, or nil. A read that the server cancels goes on as long as rows come,
// and asks for fewer until there is one. The present limit decides nothing there: if the last transaction has
// shown that rows are wide, the next one reads few of them already.
//
// A transaction that fails in any other way after longRun asks for fewer rows at its next try, too: a pooler
// may have cut it for its time.
func (r *chunkReader) retry(ctx context.Context, failures *int, tx *transaction, err error) error {
	if errors.As(err, new(*poller.LostError)) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	limit, came, ran := r.rows(), false, time.Duration(0)
	if tx != nil {
		limit, came, ran = tx.limit, tx.count > 0, time.Since(tx.begun)
	}
	r.Log.Debug("a chunk failed", zap.Int("limit", limit), zap.Error(err))
	*failures++
	connecting := errors.As(err, new(*pgconn.ConnectError))
	pause := time.Duration(0)
	step, explained := r.db.diagnose(r.Resource.Table, err, ran)
	switch {
	case came && errors.Is(err, context.DeadlineExceeded): // the consumer of the rows took the time
		step = again
	case (tx == nil || connecting) && step == smaller: // it asked for no rows
		step = again
	}
	if !connecting && (step == smaller || ran >= longRun) {
		r.Metrics.SQLTimeouts.Inc()
		r.limit, r.cut = max(limit/4, 1), limit
	}
	switch step {
	case smaller:
		if limit == 1 && !came && r.unfiltered {
			return fmt.Errorf("%w. It was a read of only one row. Perhaps no index begins with (updated_at, id)",
				explained)
		}
		*failures = 0
		r.unfiltered = r.unfiltered || !came
	case alone:
		if tx != nil && r.careful != 1 {
			r.careful, *failures = 1, 0
			break
		}
		r.table = nil // the query fails for every row: as with lookAgain
	case withoutLong:
		r.Log.Warn("a row is too long to be read whole: its long values are left out, and it becomes a dead letter",
			zap.Error(err))
		r.longRows = time.Now().Add(guardTime)
	case again:
		pause = firstPause << (*failures - 1)
	case giveUp, lookAgain: // the table may have changed, also while a person removes the cause of an error
		r.table = nil
		if step == giveUp {
			return explained
		}
	}
	if *failures > mostFailures {
		return explained
	}
	return wait.For(ctx, pause)
}
