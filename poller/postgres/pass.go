package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

const (
	// coldPatience limits the time that pass.look waits.
	coldPatience = 2 * time.Second
	quiesceEvery = 20 * time.Millisecond
)

// pass is one read of everything that may have changed since settled, in the order (updated_at, id), or the
// rest of a pass that was cut short. doc.go explains why it may leave out rows.
type pass struct {
	horizons *horizons
	table    *table
	identity watermark.Identity

	clock     *clock // of its beginning. Rows that it does not show are for the next pass
	settled   schemas.Instant
	from      schemas.Instant // settled, or the beginning of the passes that follow the load
	passed    schemas.Instant // the place that settled has reached: from, or later in a replay
	resumed   bool            // at a cursor
	firstLoad bool            // from is before every row
	undated   bool            // settled is, so rows without updated_at are read
	published bool            // rows were, by an earlier part of this pass
	started   schemas.Instant
	// final, if not zero, makes each row come with the answer whether its writer's id is smaller.
	final uint64
	// floor is the floor that the whole pass leaves, or nil. The pass's rows lie below it, so it may call them
	// final.
	floor *watermark.Floor

	// xmin is the smaller xmin of clock and of the clock of a first part that was read before.
	xmin uint64
	good int // rows
	// bad is the first bad chunk. Neither settled nor the cursor may pass its beginning.
	bad *chunk
	// cursor is that of the last batch.
	cursor *watermark.Cursor
	// parts are those that have not been read to their end. The first one is in hand.
	parts []part

	// load, if not nil, makes the pass a load (heap.go). It is the place behind the last chunk. Then the parts
	// are the blocks and the rows without updated_at.
	load *watermark.Load
	// moved is the load of the watermark: the place behind the last chunk before a bad one. Nil means none.
	moved *watermark.Load
	// blocks is the size of the load's next transaction. cut is that of the last one that failed, or 0.
	blocks, cut int
	// broken is the number of blocks that the server cannot read.
	broken int
}

// part is one range of a pass, read by one query.
type part struct {
	// low leaves out the rows that earlier passes have met: rows of the pass's table whose writer's id is
	// smaller. Zero leaves out no row. Rows of any other relation pass. A relation that was attached, or took
	// the table's name, since the catalogue was asked has rows that no transaction has written since.
	low uint64
	// undated is set for the rows without updated_at, which are read by id. blocks is set for those of a load.
	undated bool
	blocks  bool
	after   key
	// until is the place of the cursor, if the rows before it are read again. Nil means the end of the table.
	until *key
}

// newPass returns the pass for a request. Rows before start are not wanted. before is the load that this pass
// follows, or nil. A bad chunk of the load is one of this pass too.
func newPass(r poller.Request, start schemas.Instant, hs *horizons, before *pass) *pass {
	p := &pass{horizons: hs, settled: r.From, from: r.From, started: r.Started, blocks: firstBlocks,
		published: r.Rows > 0 && (r.Cursor != nil || r.Load != nil)}
	if r.Load != nil {
		p.from = max(p.from, r.Load.Before)
	}
	p.passed = max(r.Passed, p.from)
	if before != nil {
		p.good, p.bad, p.moved = before.good, before.bad, before.moved
	}
	first := max(schemas.MinInstant, start)
	p.firstLoad, p.undated = p.from <= first, p.settled <= first
	return p
}

// inherit learns about the server's clock from the watermark, before this owner first reads the clock: a
// horizon, and that the clock had passed settled by an overlap. Only the identity shows whether settled comes
// from a standby, whose clock may be behind its primary's.
func (p *pass) inherit(r poller.Request) {
	c := p.clock
	if at := r.Cursor; at != nil && len(p.horizons.recorded) == 0 && at.HorizonNext > 0 &&
		(!c.known || at.HorizonTime <= c.time) {
		p.horizons.record(horizon{time: at.HorizonTime, next: at.HorizonNext})
	}
	first, id := p.horizons.began == nil, r.Identity
	if c.standby {
		first = p.horizons.replayed == nil && id != nil && id.Table != 0 && id.Started == schemas.MinInstant
	}
	back := c.time.Add(p.horizons.allowed) < p.passed.Add(p.horizons.overlap)
	if first && back && c.known && (!p.firstLoad || p.passed > p.from) {
		p.horizons.wentBack(c.time)
	}
}

// look reads the clock, the table and its identity. A new owner does so again until the transactions before
// its first horizon are over. Otherwise, on a busy database, no horizon would count for this pass. An owner
// that makes one pass, as run --once does, would never settle.
func (p *pass) look(ctx context.Context, r *chunkReader, of poller.Request) (err error) {
	cold := len(p.horizons.recorded) == 0 && of.Cursor == nil && of.Load == nil
	defer r.Doing("")
	before, failures := r.lineage, 0
	for first := (*clock)(nil); ; {
		r.Doing(Unanswered)
		if p.table, err = r.describe(ctx); err == nil {
			p.clock, p.identity, err = identify(ctx, r, p.table)
		}
		if err != nil {
			if err = r.retry(ctx, &failures, nil, err); err != nil {
				return err
			}
			continue
		}
		r.Doing("")
		if p.lags(of) {
			if err = before.wait(); err != nil {
				r.lineage = before // this read takes no row from that server
				return r.db.explain(r.Resource.Table, err)
			}
			cold = false // to wait longer for a server that lags does not help
		}
		p.inherit(of)
		p.horizons.observe(p.clock, true)
		first = cmp.Or(first, p.clock)
		if !cold || !p.clock.known || p.clock.xmin >= first.next || time.Since(first.answered) >= coldPatience {
			return nil
		}
		if err = wait.For(ctx, quiesceEvery); err != nil {
			return err
		}
		before, failures = r.lineage, 0
	}
}

// lost returns why the results of earlier passes do not count any more, or nil: the clock was set back
// further than settled allows, or another database answers. An error for the first of these goes back
// furthest and asks for a sweep, so it covers the others.
func (p *pass) lost(r poller.Request, start schemas.Instant) *poller.LostError {
	if from := max(p.horizons.consumeBack(), start); from < p.passed {
		return &poller.LostError{From: from, Sweep: true, Why: fmt.Sprintf("the database's clock was set back (or "+
			"overlap was raised): it says %s. Rows with stamps from %s on are read again", p.clock.time, from)}
	}
	if lost := differs(&p.identity, r.Identity); lost != nil || r.Cursor == nil {
		return lost
	}
	return p.follows(r.Cursor)
}

// begin chooses the parts of the pass, and the floor that it leaves. It returns why the request's floor is of
// no use here, or nil.
func (p *pass) begin(r poller.Request) *poller.LostError {
	p.xmin, p.identity.Xmin = p.clock.xmin, p.clock.xmin
	if p.load != nil {
		p.parts = []part{{blocks: true}}
		if p.undated {
			p.parts = append(p.parts, part{undated: true, after: beforeAll})
		}
		return nil
	}
	rest, shown := part{after: keyAt(p.from)}, p.clock.shown()
	if r.Floor != nil {
		added := func(field string) bool { return !slices.Contains(r.Fields, field) }
		switch { // rows may look different although no transaction has written them
		case r.Fields != nil && slices.ContainsFunc(p.table.fields, added):
			return lost(false, "a column has come")
		case p.table.noFloor != "":
			return lost(false, "%s", p.table.noFloor)
		}
		before, lost := trusts(r.Floor, p.clock, p.from)
		if lost != nil {
			return lost
		}
		rest = p.above(&before)
		// Rows that the floor shows were met, even if this server shows less: a standby does not list transactions.
		shown = shown.with(&before)
	}
	if p.table.noFloor == "" {
		p.floor = newFloor(shown.cut(maxRunning), p.from)
	}
	if r.Cursor != nil {
		p.resume(r.Cursor)
		if at := keyOf(r.Cursor); at.after(rest.after) {
			rest.after = at
		}
	}
	p.parts = append(p.parts, rest)
	if p.firstLoad || p.resumed { // the part before the cursor may have been one of a first load
		p.parts = append(p.parts, part{undated: true, after: beforeAll})
	}
	if p.horizons.reach(p.xmin) <= p.from || p.resumed && rest.after.instant() <= p.from {
		p.nothingSettles()
	}
	return nil
}

// above returns a part with the rows that the snapshot before does not show and the pass's clock does.
func (p *pass) above(before *snapshot) part {
	low := before.low(p.clock)
	return part{low: low, after: keyAt(max(p.from, p.horizons.reach(low)))}
}

// nothingSettles makes the following statements ask which rows are final, because settled does not follow the
// rows: a transaction is open, or one has given very many rows the same updated_at.
func (p *pass) nothingSettles() {
	if p.floor != nil {
		p.final = p.xmin
	}
}

// lags returns true if the server is a standby that lacks transactions by which settled moved, read from
// another server and maybe by another owner. It also returns true if the server is a primary that was
// replaced and still answers. Either would show old versions of rows whose new versions lie below settled.
func (p *pass) lags(r poller.Request) bool {
	id := r.Identity
	switch {
	case id == nil, p.clock.standby && differs(&p.identity, id) != nil:
		return false
	case !p.clock.standby:
		return p.identity.System == id.System && p.identity.Timeline > 0 && p.identity.Timeline < id.Timeline
	}
	known := coarse(id.Xmin) // a cursor's xmin is no larger
	if r.Floor != nil {
		met, _ := parseSnapshot(r.Floor.Snapshot) // trusts reports the error
		known = known.with(&met)
	}
	return p.clock.xmin < known.xmin || p.clock.xmax < known.xmax
}

// follows returns why the rest of the pass that was cut short at cursor cannot be read here, or nil. If the
// server has not given out such ids, rows that were before the cursor there may be missing here.
func (p *pass) follows(cursor *watermark.Cursor) *poller.LostError {
	switch {
	case cursor.Xmin > p.clock.next || cursor.HorizonNext > p.clock.next:
		return lost(true, "the server has not given out the transaction ids of the cursor: it lags, or was "+
			"restored")
	case cursor.UpdatedAt < p.from:
		return lost(false, "the cursor lies before settled")
	case cursor.Floor != nil && p.table.noFloor != "":
		return lost(false, "%s", p.table.noFloor)
	}
	return nil
}

// resume continues at cursor. Rows that have become visible before it are read again first. So a transaction
// that was over when this pass began does not keep settled back. This is for a pass that poll.memory cut
// short: it cannot end before settled moves. If the table has no floor, everything before cursor is read
// again.
//
// If that would settle nothing, the pass takes over the first part's xmin and horizon: it was read beside a
// transaction that may be over by now, and the rest alone would settle the whole. For the same reason the
// floor shows no more than that xmin.
func (p *pass) resume(cursor *watermark.Cursor) {
	p.resumed, p.cursor = true, cursor
	again, settles := part{after: keyAt(p.from)}, p.horizons.reach(p.clock.xmin) > p.from
	switch {
	case !settles, p.table.noFloor != "":
	case cursor.Floor == nil:
		settles = false
	default:
		before, lost := trusts(cursor.Floor, p.clock, p.from)
		again, settles = p.above(&before), lost == nil
	}
	if settles {
		until := keyOf(cursor)
		again.until = &until
		p.parts = append(p.parts, again)
		return
	}
	p.started, p.xmin, p.floor = cursor.Started, min(p.xmin, cursor.Xmin), nil
	if cursor.Floor != nil {
		p.floor = newFloor(coarse(p.xmin), p.from)
	}
}

// batch returns the batch of the next chunk of the part in hand, or nil if its rows are not published. Its
// error is a *poller.LostError.
func (p *pass) batch(c *chunk) (*poller.Batch, error) {
	part := p.parts[0]
	p.horizons.observe(c.clock, false)
	switch {
	case c.table.oid != p.table.oid || c.table.noFloor != p.table.noFloor:
		return nil, lost(true, "the table was replaced while it was read")
	case part.blocks && p.file(c.clock) != p.load.File:
		return nil, rewritten(p)
	case p.floor != nil && c.clock.standby && !p.clock.standby:
		p.floor = newFloor(coarse(p.xmin), p.from) // a standby does not report its snapshot above xmin
	}

	if part.blocks {
		p.moveBehind(c)
	}
	// A bad chunk is left out. The pass goes on behind it, is not complete then, and ends in a BlockedError.
	// Rows without updated_at are expected to be bad, and become dead letters, unless no row can be published.
	if c.bad() && (!part.undated || p.good == 0 && !p.published || p.bad != nil) {
		p.bad = cmp.Or(p.bad, c)
		return nil, nil
	}
	p.good += len(c.Rows)
	b := &c.Batch
	b.Identity = &p.identity

	if p.load != nil && p.bad == nil {
		if p.moved = p.load; part.blocks {
			b.Final = slices.Repeat([]bool{true}, len(b.Rows))
		}
		if c.last && len(p.parts) == 1 { // the load has ended
			p.moved, b.Settled = nil, p.load.Before
		}
	}
	if b.Load = p.moved; p.load != nil {
		return b, nil
	}
	if !part.undated {
		// Settled moves to the end of the gap-free range, as far as the horizons allow.
		end := c.end.instant()
		switch {
		case c.last && part.until != nil:
			end = part.until.instant()
		case c.last:
			end = schemas.MaxInstant
		}
		if p.bad != nil {
			end = min(end, p.bad.from.instant())
		}
		if settled := min(end, p.horizons.reach(p.xmin)); settled > p.from {
			b.Settled = settled
		}
		if part.until == nil && c.from.at == c.end.at {
			p.nothingSettles()
		}
	}
	if !part.undated && part.until == nil && p.bad == nil {
		// With the horizon in the cursor, the rest of the pass can settle the first part too.
		p.cursor = &watermark.Cursor{UpdatedAt: c.end.instant(), ID: c.end.id, Xmin: p.xmin, Started: p.started}
		if p.floor != nil {
			p.cursor.Floor = newFloor(coarse(p.xmin), p.from)
		}
		if h := p.horizons.best(p.xmin); h != nil {
			p.cursor.HorizonTime, p.cursor.HorizonNext = h.time, h.next
		}
	}
	if b.Cursor = p.cursor; p.bad != nil {
		b.Final = nil // the watermark does not move behind these rows
	}

	if c.last && len(p.parts) == 1 && p.bad == nil { // the pass is complete
		b.Cursor = nil
		b.Done = &poller.Done{Started: p.started, Complete: true, Fields: p.table.fields, Floor: p.floor}
		if !p.resumed { // the first part may have met another transaction, which is not known any more
			b.Done.Delayed = p.horizons.delays(p.clock, p.xmin)
		}
	}
	return b, nil
}
