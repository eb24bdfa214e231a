package postgres

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

const (
	// firstLoadPatience is how long a first load waits for the transactions in flight at its start, so that it
	// can settle as it goes. After a minute `run --once` gives up on a resource without progress.
	firstLoadPatience = 30 * time.Second
	// coldPatience is how long any other first pass of a new owner waits.
	coldPatience = 2 * time.Second
)

// completePass is one read of everything that may have changed since settled, in the order (updated_at, id),
// or the rest of a pass that a crash cut short.
type completePass struct {
	chunks   *chunkReader
	horizons *horizons
	table    string

	from      schemas.Instant
	at        key  // where to begin
	resumed   bool // at a cursor
	firstLoad bool // from is before every row
	started   schemas.Instant

	// xmin is the smallest of the chunks so far, including those before a crash.
	xmin  uint64
	first *clock // of this read's first chunk; nil: none yet
	good  int    // rows
	// bad is the first bad chunk. Neither settled nor the cursor may pass its beginning.
	bad *chunk
	// cursor is that of the last batch, settled the furthest that a batch said.
	cursor  *watermark.Cursor
	settled schemas.Instant
}

// newCompletePass decides where to begin. A new owner has no horizon yet: then it notes one.
func newCompletePass(ctx context.Context, s *Source, r poller.Request) (*completePass, error) {
	p := &completePass{
		chunks: s.chunks, horizons: &s.horizons, table: s.resource.Table,
		from: r.From, at: keyAt(r.From), firstLoad: r.From <= max(schemas.MinInstant, s.start), started: r.Started,
		xmin: math.MaxUint64, settled: r.From,
	}
	cold := len(s.horizons.noted) == 0
	if !cold && r.Cursor == nil {
		return p, nil
	}
	c, err := s.chunks.clock(ctx)
	if err != nil {
		return nil, err
	}
	if cursor := r.Cursor; cursor != nil {
		if cursor.UpdatedAt >= p.from && cursor.Xmin <= c.next && cursor.HorizonNext <= c.next {
			p.resume(cursor, cold)
			return p, nil
		}
		// The server has not given out such ids: rows that lay behind the cursor elsewhere may be missing here.
		s.log.Warn("the pass begins again: its cursor does not come from this database")
	}
	return p, p.quiesce(ctx, c)
}

// resume goes on at cursor. It carries the xmin and the horizon of the part before the crash: that part may
// have been read while a transaction was open that is over by now, and the rest alone would settle the whole.
func (p *completePass) resume(cursor *watermark.Cursor, cold bool) {
	p.resumed, p.at, p.started = true, keyOf(cursor), cursor.Started
	p.cursor, p.xmin = cursor, cursor.Xmin
	if cold && cursor.HorizonNext > 0 {
		p.horizons.note(horizon{time: cursor.HorizonTime, next: cursor.HorizonNext})
	}
}

// quiesce notes a horizon and waits until the transactions before it are over. Otherwise, on a busy database,
// no horizon would count for the first chunk of this pass: those noted during the pass come too late for it.
// A first load of an hour would be read twice.
func (p *completePass) quiesce(ctx context.Context, c *clock) error {
	patience := coldPatience
	if p.firstLoad {
		patience = firstLoadPatience
	}
	defer p.chunks.activity.says("")
	began, next, pause := time.Now(), c.next, 10*time.Millisecond
	for c.known { // on a standby without a clock nothing settles, however long this waits
		p.horizons.note(c.horizon())
		if c.xmin >= next || time.Since(began) > patience {
			return nil
		}
		p.chunks.activity.says("waiting for the transactions that were open when the load began")
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, time.Second)
		var err error
		if c, err = p.chunks.clock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read hands over everything from where the pass begins to the end. A bad chunk is left out: the pass goes on
// behind it, is not complete then, and ends in a HoldError.
func (p *completePass) read(ctx context.Context, emit func(poller.Batch) error) error {
	if err := p.chunks.handOver(ctx, changed(everything), p.at, emit, p.batch); err != nil {
		return err
	}
	if p.readsUndated() {
		if err := p.chunks.handOver(ctx, undated, beforeAll, emit, p.undatedBatch); err != nil {
			return err
		}
	}
	if p.bad != nil {
		return p.bad.hold(p.table)
	}
	return nil
}

func (p *completePass) batch(c *chunk) *poller.Batch {
	p.first = cmp.Or(p.first, c.clock)
	if c.clock.known {
		p.horizons.note(c.clock.horizon())
	}
	p.xmin = min(p.xmin, c.clock.xmin)
	if c.bad() {
		p.bad = cmp.Or(p.bad, c)
		return nil
	}
	p.good += len(c.rows)
	b := c.batch()
	b.Settled, b.Cursor = p.settle(c), p.moveCursor(c)
	if c.last && !p.readsUndated() {
		p.complete(b)
	}
	return b
}

// readsUndated says whether the pass ends with the rows that the order (updated_at, id) never meets. A pass
// that a crash cut short does: it may have been a first load.
func (p *completePass) readsUndated() bool { return p.firstLoad || p.resumed }

// undatedBatch lets a chunk of bad rows pass if the table has good ones too: rows without updated_at are
// expected to be bad, and become dead letters. If there are none, no row of the table can be published.
func (p *completePass) undatedBatch(c *chunk) *poller.Batch {
	if c.bad() && (p.good == 0 || p.bad != nil) {
		p.bad = cmp.Or(p.bad, c)
		return nil
	}
	b := c.batch()
	b.Cursor = p.cursor
	if c.last {
		p.complete(b)
	}
	return b
}

// settle is what the range up to c lets the resource settle to; MinInstant: no further.
func (p *completePass) settle(c *chunk) schemas.Instant {
	end := schemas.MaxInstant
	if !c.last {
		end = c.end.instant()
	}
	if p.bad != nil {
		end = min(end, p.bad.from.instant())
	}
	settled := min(end, p.horizons.reach(p.xmin))
	if settled <= p.from {
		return schemas.MinInstant
	}
	p.settled = max(p.settled, settled)
	return settled
}

// moveCursor moves the cursor behind c. The horizon in it lets the rest of the pass settle what came before.
func (p *completePass) moveCursor(c *chunk) *watermark.Cursor {
	if p.bad != nil {
		return p.cursor
	}
	p.cursor = &watermark.Cursor{UpdatedAt: instantOf(c.end.at), ID: c.end.id, Xmin: p.xmin, Started: p.started}
	if h, ok := p.horizons.best(p.xmin); ok {
		p.cursor.HorizonTime, p.cursor.HorizonNext = h.time, h.next
	}
	return p.cursor
}

// complete makes b the last batch of the pass. A pass with a bad chunk is not complete, whatever it read.
func (p *completePass) complete(b *poller.Batch) {
	if p.bad == nil {
		b.Cursor, b.Done = nil, &poller.Done{Started: p.started, Complete: true, Held: p.held()}
	}
}

// held says why settled stands still although the pass is complete, "" if it does not.
func (p *completePass) held() string {
	switch {
	case !p.first.known:
		return "the database is a standby that has replayed no transaction since it started: " +
			"it has no clock to settle by"
	case p.resumed: // the first part may have met another transaction, and nothing says which
		return ""
	}
	return p.horizons.held(p.first, p.xmin)
}
