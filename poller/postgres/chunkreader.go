package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// chunkReader reads chunks, and tries again where trying again at once may help. It lives as long as its
// Source.
type chunkReader struct {
	db        *DB
	resource  *schemas.Resource
	log       *zap.Logger
	cancelled prometheus.Counter // chunks that the server cancelled

	activity  activity
	catalogue catalogue
	size      chunkSizer
	lineage   lineage
	// scan is how many rows a filtered transaction may look at; 0: any number, until the server cancels one.
	scan int
	// longRows is until when rows may be met that are too long to be read whole.
	longRows time.Time
}

func newChunkReader(db *DB, c SourceConfig) *chunkReader {
	return &chunkReader{
		db: db, resource: c.Resource, log: c.Log, cancelled: c.Metrics.SQLTimeouts,
		activity:  activity{tell: c.Doing, log: c.Log},
		catalogue: catalogue{db: db, resource: c.Resource, log: c.Log},
		size:      newChunkSizer(c.MaxRows),
	}
}

// The bounds of chunkReader.scan.
const (
	firstScan = 1 << 20
	leastScan = 1 << 10
	mostScan  = 1 << 26
)

// reading reads what one transaction gives after k, and calls hand with each chunk of it.
type reading func(ctx context.Context, k key, hand func(*chunk) error) error

// of reads q.
func (r *chunkReader) of(q query) reading {
	return func(ctx context.Context, k key, hand func(*chunk) error) error { return r.next(ctx, q, k, hand) }
}

// changes reads the rows that f, as it is at each chunk, does not leave out, in the order (updated_at, id),
// until a place (nil: to the end).
//
// The fewer rows pass the filter, the further one statement looks for them: too far for the server's patience
// when an old transaction has ended after millions of changes. A smaller LIMIT is no help then. So once the
// server cancels such a statement, the next ones end at the place some rows on.
func (r *chunkReader) changes(f *filter, until *key) reading {
	return func(ctx context.Context, k key, hand func(*chunk) error) error {
		for {
			handed := false
			err := r.near(ctx, *f, k, until, func(c *chunk) error { handed = true; return hand(c) })
			var far *tooFarError
			switch {
			case !errors.As(err, &far):
				if err == nil && r.scan > 0 && r.scan < mostScan {
					r.scan *= 2
				}
				return err
			case r.scan == leastScan:
				return r.explain(smaller, far.err, chunkSize{rows: r.scan})
			case r.scan == 0:
				r.scan = firstScan
			default:
				r.scan = max(r.scan/2, leastScan)
			}
			if r.cancelled.Inc(); handed {
				return nil // the caller goes on behind it
			}
		}
	}
}

// near reads changes until a place among the next r.scan rows.
func (r *chunkReader) near(ctx context.Context, f filter, k key, until *key, hand func(*chunk) error) error {
	end := until
	if r.scan > 0 && f.low > 0 {
		err := r.next(ctx, ahead(r.scan), k, func(c *chunk) error {
			if len(c.rows)+len(c.rejects) > 0 && (until == nil || until.after(c.end)) {
				end = &c.end
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return r.next(ctx, changed(f, end), k, func(c *chunk) error {
		if c.last && end != nil {
			c.last, c.end = end == until, *end
		}
		return hand(c)
	})
}

// handOver reads chunks after k, one by one to the end, and emits what batchOf makes of each; nil: nothing.
// While emit has a batch a connection is in use only where rows are wider than was expected.
func handOver(
	ctx context.Context, read reading, k key, emit func(poller.Batch) error, batchOf func(*chunk) *poller.Batch,
) error {
	for last := false; !last; {
		err := read(ctx, k, func(c *chunk) error {
			k, last = c.end, c.last
			if b := batchOf(c); b != nil {
				return emit(*b)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unsettled hands over all chunks of q after k. Its batches settle nothing, and done goes with the last one.
// It leaves out bad chunks, and then ends in a HoldError instead of done.
func (r *chunkReader) unsettled(
	ctx context.Context, q query, k key, done *poller.Done, emit func(poller.Batch) error,
) error {
	var bad *chunk
	err := handOver(ctx, r.of(q), k, emit, func(c *chunk) *poller.Batch {
		if c.bad() {
			bad = cmp.Or(bad, c)
			return nil
		}
		b := c.batch()
		if c.last && bad == nil {
			b.Done = done
		}
		return b
	})
	if err == nil && bad != nil {
		return bad.hold(r.resource.Table)
	}
	return err
}

// look reads a chunk without rows: the clock, the table, and whose they are.
func (r *chunkReader) look(ctx context.Context) (*chunk, error) {
	var look *chunk
	err := r.next(ctx, nil, key{}, func(c *chunk) error { look = c; return nil })
	return look, err
}

// next reads what one transaction gives, and calls hand with each chunk of it. The chunks' clocks follow
// those before them.
func (r *chunkReader) next(ctx context.Context, q query, k key, hand func(*chunk) error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 3*time.Second
	failed := map[remedy]int{}
	for {
		size := r.size.next()
		var refused error
		handed := false
		err := r.try(ctx, q, k, size, func(c *chunk) error {
			handed = true
			refused = hand(c)
			return refused
		})
		switch {
		case refused != nil:
			return refused
		case err == nil || errors.Is(err, errRewound):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, new(*tooFarError)):
			return err
		}
		r.log.Debug("a chunk failed", zap.Int("limit", size.rows), zap.Error(err))
		remedy := remedyFor(err)
		failed[remedy]++
		again := r.apply(remedy, err, size)
		if handed {
			return nil // the caller goes on behind it
		}
		if !again || failed[remedy] > remedies[remedy].tries {
			return r.explain(remedy, err, size)
		}
		if remedies[remedy].pause {
			if err := wait.For(ctx, pauses.NextBackOff()); err != nil {
				return err
			}
		}
	}
}

func (r *chunkReader) try(
	ctx context.Context, q query, k key, size chunkSize, hand func(*chunk) error,
) error {
	answered := r.activity.await()
	defer answered()
	t, err := r.catalogue.get(ctx)
	if err != nil {
		return err
	}
	if time.Now().Before(r.longRows) {
		t = t.cutLong()
	}
	cost, err := readChunks(ctx, r.db, t, q, k, size, answered, func(c *chunk) error {
		if c.clock.relation != t.oid || c.clock.hidden != t.hidden {
			return errSwapped
		}
		if err := r.lineage.follow(c.clock); err != nil {
			return err
		}
		r.size.widths(len(c.rows)+len(c.rejects), c.bytes)
		return hand(c)
	})
	if cost.cut {
		r.longRows = time.Now().Add(guardTime)
	}
	if err == nil {
		r.size.learn(cost)
	}
	return err
}

// apply prepares another try; false: none will help.
func (r *chunkReader) apply(remedy remedy, err error, size chunkSize) bool {
	switch remedy {
	case smaller:
		r.cancelled.Inc()
		return r.size.cancelled(size.rows)
	case withoutLong:
		r.log.Warn("a row is too long to be read whole: what is too long is left out, and the row becomes a dead "+
			"letter", zap.Error(err))
		r.longRows = time.Now().Add(guardTime)
	case lookAgain, hold: // whoever resolves a hold may change the table
		r.catalogue.forget()
	case reconnect, reconnectRefused, reconnectSilent:
		r.db.dropIdle(err)
	}
	return true
}

func (r *chunkReader) explain(remedy remedy, err error, size chunkSize) error {
	err = r.db.endpoint().explain(r.resource.Table, err)
	if remedy == smaller {
		return fmt.Errorf("%w: even %d rows take longer than the server allows: is there an index on "+
			"(updated_at, id) of %s?", err, size.rows, r.resource.Table)
	}
	return err
}
