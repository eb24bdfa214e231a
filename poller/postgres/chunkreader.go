package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// chunkReader reads chunks. It lives as long as its Source.
type chunkReader struct {
	db        *DB
	resource  *schemas.Resource
	log       *zap.Logger
	cancelled prometheus.Counter // chunks that the server cancelled

	doing     func(string) // see SourceConfig.Doing
	activity  string       // the last text for doing, apart from Unanswered
	catalogue catalogue
	size      chunkSizer
	lineage   lineage
	// longRows is the time until which rows may come that are too long to be read whole.
	longRows time.Time
}

func newChunkReader(db *DB, c SourceConfig) *chunkReader {
	return &chunkReader{
		db: db, resource: c.Resource, log: c.Log, cancelled: c.Metrics.SQLTimeouts,
		doing:     c.Doing,
		catalogue: catalogue{db: db, resource: c.Resource, log: c.Log},
		size:      newChunkSizer(c.MaxRows),
	}
}

// chunks yields the rows of q after a place until another one, in chunks. A nil until means the end of the
// table. It chooses how much one transaction reads. If a transaction fails, it tries again behind the rows
// that have come, as often as that may help, and yields the error that is left.
//
// The chunks' clocks follow one another in one history of the database. At least one chunk comes before the
// end, maybe an empty one.
func (r *chunkReader) chunks(ctx context.Context, q query, after key, until *key) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		var s *stream
		defer func() { _ = s.close() }() // only a caller that wants no more leaves it open
		for failed := (tries{}); ; {
			var err error
			s, err = r.open(ctx, q, after, until)
			for err == nil && s.tx != nil {
				var c *chunk
				c, err = s.next()
				if err != nil && c.count() == 0 {
					break
				}
				r.size.met(c)
				if s.cut {
					r.longRows = time.Now().Add(guardTime)
				}
				used := time.Now()
				if err == nil && s.tx == nil {
					r.size.learn(s.count >= s.limit, s.first, used.Sub(s.asked)-s.waited)
				}
				after, failed = c.end, tries{}
				if !yield(c, nil) || c.last {
					return
				}
				s.waited += time.Since(used)
			}
			if err == nil {
				continue
			}
			if err = r.retry(ctx, &failed, s, err); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// open asks for the rows of q after a place, and waits for the first row.
func (r *chunkReader) open(ctx context.Context, q query, after key, until *key) (*stream, error) {
	answered := r.await()
	defer answered()
	t, err := r.catalogue.get(ctx)
	if err != nil {
		return nil, err
	}
	if time.Now().Before(r.longRows) {
		t = t.cutLong()
	}
	s := &stream{table: t, limit: r.size.rows(), until: until, end: after, asked: time.Now()}
	sql := q(t, after, until, s.limit)
	if r.size.far = sql.far; sql.far && r.size.scan > 0 {
		end, err := r.placeAfter(ctx, t, after)
		if err != nil {
			return nil, err
		}
		if end != nil && (until == nil || until.after(*end)) {
			s.until, s.step = end, true
			sql = q(t, after, end, s.limit)
		}
	}
	sql.locks = t.lockable
	if s.tx, err = r.begin(ctx, chunkDeadline, t, &sql); err != nil {
		return nil, err
	}
	if !t.matches(s.tx.rows.FieldDescriptions()) {
		return nil, s.tx.close(errRetyped)
	}
	s.more = s.tx.rows.NextRow()
	s.first = time.Since(s.asked)
	return s, nil
}

// begin begins a transaction that shows the table that the catalogue knows, and no less than the transactions
// before it have shown.
func (r *chunkReader) begin(
	ctx context.Context, limit time.Duration, t *table, q *statement,
) (*transaction, error) {
	tx, err := r.db.begin(ctx, limit, t, q)
	if err != nil {
		return nil, err
	}
	if tx.clock.relation != t.oid || tx.clock.hidden != t.hidden {
		return nil, tx.close(errSwapped)
	}
	if err := r.lineage.follow(tx.clock); err != nil {
		return nil, tx.close(err)
	}
	return tx, nil
}

// placeAfter returns the place of the row that comes size.scan rows after a place, or nil if there are not so
// many.
func (r *chunkReader) placeAfter(ctx context.Context, t *table, after key) (*key, error) {
	q := rowAfter(t, after, r.size.scan)
	tx, err := r.begin(ctx, chunkDeadline, t, &q)
	if err != nil {
		return nil, err
	}
	answer, err := tx.answer()
	if err != nil || len(answer.Rows) == 0 {
		return nil, err
	}
	at, _ := idOf(answer.Rows[0][0])
	id, _ := idOf(answer.Rows[0][1])
	return &key{at: at, id: id}, nil
}

// identify reads the clock, the table, and its identity.
func (r *chunkReader) identify(ctx context.Context) (c *clock, t *table, id watermark.Identity, err error) {
	for failed := (tries{}); ; {
		if c, t, id, err = r.identifyOnce(ctx); err == nil {
			return c, t, id, nil
		}
		if err = r.retry(ctx, &failed, nil, err); err != nil {
			return nil, nil, watermark.Identity{}, err
		}
	}
}

func (r *chunkReader) identifyOnce(ctx context.Context) (*clock, *table, watermark.Identity, error) {
	answered := r.await()
	defer answered()
	t, err := r.catalogue.get(ctx)
	if err != nil {
		return nil, nil, watermark.Identity{}, err
	}
	q := identityQuery(t)
	tx, err := r.begin(ctx, catalogueDeadline, t, &q)
	if err != nil {
		return nil, nil, watermark.Identity{}, err
	}
	answer, err := tx.answer()
	if err != nil {
		return nil, nil, watermark.Identity{}, err
	}
	id, err := identityOf(t, answer.Rows)
	return tx.clock, t, id, err
}

// retry prepares another try after err. s is the stream that failed, or nil if no row has come. retry returns
// the error that ends the read, or nil. A read that the server cancels goes on as long as rows come.
func (r *chunkReader) retry(ctx context.Context, failed *tries, s *stream, err error) error {
	if errors.As(err, new(*poller.LostError)) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	remedy := remedyFor(err)
	limit, came := r.size.rows(), false
	if s != nil {
		limit, came = s.limit, s.count > 0
	}
	r.log.Debug("a chunk failed", zap.Int("limit", limit), zap.Error(err))
	switch remedy {
	case smaller:
		r.cancelled.Inc()
		if !r.size.cancelled(limit) && !came {
			return fmt.Errorf("%w. The server cancelled even a read of %d rows: is there an index on "+
				"(updated_at, id) of %s?", r.explain(err), limit, r.resource.Table)
		}
	case withoutLong:
		r.log.Warn("a row is too long to be read whole: its long values are left out, and it becomes a dead letter",
			zap.Error(err))
		r.longRows = time.Now().Add(guardTime)
	case giveUp, lookAgain: // the table may have changed, also while a person removes the cause of an error
		r.catalogue.forget()
	}
	pause, again := failed.add(remedy)
	if !again {
		return r.explain(err)
	}
	return wait.For(ctx, pause)
}

func (r *chunkReader) explain(err error) error { return r.db.explain(r.resource.Table, err) }
