package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

const (
	// A first load waits so long for the transactions in flight at its start, so that it can settle as it goes (less than the minute after which
	// `run --once` gives a resource up that makes no progress); any other pass of a new owner
	// only as long as nobody minds.
	firstLoadPatience = 30 * time.Second
	coldPatience      = 2 * time.Second
)

// pass reads what may have changed since r.From.
func (s *Source) pass(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	r.From = max(r.From, s.Start)
	if done, err := s.newest(ctx, r, emit); done || err != nil && !errors.Is(err, errRewound) {
		return err
	}
	err := s.complete(ctx, r, emit)
	if errors.Is(err, errRewound) {
		s.Log.Warn("begin the pass again", zap.Error(err))
		r.Cursor = nil
		err = s.complete(ctx, r, emit)
	}
	return err
}

// complete reads everything from r.From, or r.Cursor, to the end.
func (s *Source) complete(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	began := time.Now()
	s.front = nil
	p := &pass{s: s, r: r, emit: emit, xmin: math.MaxUint64, cursor: r.Cursor, reached: r.From}
	at, err := p.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.walk(ctx, changed(0, noFilter), at, p.take); err != nil {
		return err
	}
	if err := p.undated(ctx); err != nil {
		return err
	}
	if p.spoiled != nil {
		return p.spoiled.hold(s.Resource.Table)
	}
	p.finish()
	s.completed, s.cost = time.Now(), time.Since(began)
	return nil
}

// pass is one complete pass, or the rest of one.
type pass struct {
	s       *Source
	r       poller.Request
	emit    func(poller.Batch) error
	resumed bool
	// xmin is the smallest among the chunks read so far, those before a crash included; first is the first clock of this read.
	xmin  uint64
	first *clock
	good  int
	// cursor is that of the last batch, and reached the furthest settled of one.
	cursor  *watermark.Cursor
	reached schemas.Instant
	// spoiled is the first bad page, which begins at bound: neither settled nor the cursor may pass it.
	spoiled *badPage
	bound   schemas.Instant
	// held: it is complete, and settled stands still.
	held bool
}

// begin says where to start, and with a new owner makes sure that there is a mark to settle by.
func (p *pass) begin(ctx context.Context) (key, error) {
	s, cursor := p.s, p.r.Cursor
	cold := len(s.settle.marks) == 0
	if !cold && cursor == nil {
		return keyAt(p.r.From), nil
	}
	c, err := s.read(ctx, nil, key{})
	if err != nil {
		return key{}, err
	}
	now := &c.clock
	if cursor != nil && (cursor.UpdatedAt < p.r.From || cursor.Xmin > now.next || cursor.HorizonNext > now.next) {
		// Ids that this server has not given out: the cursor is another cluster's, and rows that it had behind it may be missing here.
		s.Log.Warn("the pass begins again: its cursor is not of this database")
		cursor, p.r.Cursor, p.cursor = nil, nil, nil
	}
	if cursor != nil {
		p.resumed, p.xmin = true, cursor.Xmin
		if cold && cursor.HorizonNext > 0 {
			s.settle.note(mark{time: cursor.HorizonTime, next: cursor.HorizonNext})
		}
		return keyOf(cursor), nil
	}
	return keyAt(p.r.From), p.quiesce(ctx, now)
}

// quiesce notes a mark and waits until the transactions before it are over. Without it, on a busy database, no chunk of this pass could settle by any
// mark: the marks noted while it reads come too late for its first chunk, and a first load of an hour would be read twice.
func (p *pass) quiesce(ctx context.Context, c *clock) error {
	patience := coldPatience
	if p.r.From <= max(schemas.MinInstant, p.s.Start) {
		patience = firstLoadPatience
	}
	began, next, wait := time.Now(), c.next, 10*time.Millisecond
	for {
		if !c.known {
			return nil // on a standby without a clock nothing settles, whoever waits
		}
		p.s.settle.note(c.mark())
		if c.xmin >= next || time.Since(began) > patience {
			p.s.does("")
			return nil
		}
		p.s.does("waiting for the transactions that were open when the load began")
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, time.Second)
		again, err := p.s.read(ctx, nil, key{})
		if err != nil {
			return err
		}
		c = &again.clock
	}
}

// take settles and hands over one chunk.
func (p *pass) take(c *chunk, from key) error {
	s := p.s
	if p.first == nil {
		p.first = &c.clock
	}
	if c.clock.known {
		s.settle.note(c.clock.mark())
	}
	p.xmin = min(p.xmin, c.clock.xmin)
	if c.bad() {
		if p.spoiled == nil {
			p.spoiled, p.bound = pageError(c), from.instant()
		}
		if !c.last {
			return nil
		}
		c.rows, c.rejects = nil, nil
	}
	p.good += len(c.rows)
	b := poller.Batch{Rows: c.rows, Rejects: c.rejects, Settled: p.settled(c), Cursor: p.place(c)}
	if c.last && !p.wantsUndated() {
		p.end(&b)
	}
	return p.emit(b)
}

// settled is what the range read so far, with c at its end, lets the resource settle to. MinInstant: no further.
func (p *pass) settled(c *chunk) schemas.Instant {
	end := schemas.MaxInstant
	if !c.last {
		end = c.end.instant()
	}
	if p.spoiled != nil {
		end = min(end, p.bound)
	}
	settled := min(end, p.s.settle.reach(p.xmin))
	if settled <= p.r.From {
		return schemas.MinInstant
	}
	p.reached = max(p.reached, settled)
	return settled
}

// place is the cursor after c, with the mark that lets the rest of the pass settle what came before it. It stays before the first bad page.
func (p *pass) place(c *chunk) *watermark.Cursor {
	if p.spoiled != nil {
		return p.cursor
	}
	p.cursor = &watermark.Cursor{UpdatedAt: instantOf(c.end.at), ID: c.end.id, Xmin: p.xmin, Started: p.started()}
	if m, ok := p.s.settle.best(p.xmin); ok {
		p.cursor.HorizonTime, p.cursor.HorizonNext = m.time, m.next
	}
	return p.cursor
}

func (p *pass) started() schemas.Instant {
	if p.r.Cursor != nil {
		return p.r.Cursor.Started
	}
	return p.r.Started
}

// wantsUndated: a pass that began at the first row, or before a crash that hides whether it did, looks for rows without updated_at too.
func (p *pass) wantsUndated() bool {
	return p.resumed || p.r.From <= max(schemas.MinInstant, p.s.Start)
}

// undated reads the rows that the keyset never meets, and so ends a first load.
func (p *pass) undated(ctx context.Context) error {
	if !p.wantsUndated() {
		return nil
	}
	return p.s.walk(ctx, undated, key{id: math.MinInt64}, func(c *chunk, _ key) error {
		if p.good == 0 && c.bad() && p.spoiled == nil {
			// All there is cannot be published. With good rows beside them these are just faulty ones, which is what they are read for.
			p.spoiled = pageError(c)
		}
		b := poller.Batch{Rows: c.rows, Rejects: c.rejects, Settled: schemas.MinInstant, Cursor: p.cursor}
		if p.spoiled != nil && c.bad() {
			b.Rejects = nil
		}
		if c.last {
			p.end(&b)
		}
		return p.emit(b)
	})
}

// end makes b the last batch of the pass, unless the pass is spoiled: then it is not complete, whatever was read.
func (p *pass) end(b *poller.Batch) {
	if p.spoiled != nil {
		return
	}
	b.Cursor = nil
	b.Done = &poller.Done{Started: p.started(), Complete: true}
	switch {
	case !p.first.known:
		b.Done.Held = "the database is a standby that has replayed no transaction since it started: it has no clock to settle by"
	case !p.resumed: // what a first part before a crash was read under, nobody remembers
		b.Done.Held = p.s.held(p.first, p.xmin)
	}
	p.held = b.Done.Held != "" && p.first.known
}

// finish remembers a pass whose every batch was taken over.
func (p *pass) finish() {
	s := p.s
	s.settle.forget(p.xmin)
	if p.held {
		s.front, s.frontFrom = newFrontier(s.Overlap, p.first, p.reached), p.reached
	}
}

// held says why settled stands still, if it does: a transaction has been open for longer than overlap.
func (s *Source) held(c *clock, xmin uint64) string {
	since, ok := s.settle.waiting(xmin)
	if !ok || !c.known || c.time.Sub(since) <= s.Overlap {
		return ""
	}
	return fmt.Sprintf("a transaction (id %d) is open since about %s and may still bring rows from before: settled waits for its end", xmin, since)
}
