package poller

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// eraser deletes single rows from the topic that somebody has asked for, and that the source has no longer.
//
// It works in the poller's goroutine, as repair does and for the same reason, after a poll that went well. It
// looks at once: a row that the source shows stays, and that is the answer. One that it does not show is
// looked for again an overlap later, for over REST a row that is being updated may be nowhere for a while.
// The row is deleted if neither the second look nor any other read in between has shown it (sights). Rows
// that wait are in the watermark. The time since when a row was not shown is not, so a new owner begins with
// its first look.
//
// An answer that does not show a row proves that it is gone only if the question would have shown it. So, as
// in a sweep, an empty answer proves nothing, and neither does one with rows that have no usable id. Over
// REST a look asks for the days that the topic's records of the row give. The row may have got other days
// since, or may have lost them. So the eraser asks for a sweep, which reads all rows by created_* and by
// updated_*. It deletes the row when a sweep is over that began after the first look, and no read has shown
// the row.
type eraser struct {
	cfg     *Config
	state   *state
	writer  *writer
	read    func(context.Context, Request) iter.Seq2[Batch, error] // Poller.read
	missing map[int64]absence
	sights  *sights // of the missing rows
}

// absence is the state of a row that the eraser does not find.
type absence struct {
	// since is the time of the look with which the confirmation began. restarts is set if another read has
	// shown the row after that. The eraser begins no further confirmation after until.
	since    time.Time
	restarts bool
	until    time.Time
	// swept is the time from which on a sweep has to begin, over REST. Zero means that none has to.
	swept schemas.Instant
}

// copies are the topic's records of one row, and the days that they give for it.
type copies struct {
	own                  bool // a row in its own partition
	strays               []int32
	updatedAt, createdAt schemas.Instant
}

// step looks at the rows that are due.
func (e *eraser) step(ctx context.Context) error {
	due := e.due()
	if len(due) == 0 {
		return nil
	}
	held, err := e.held(ctx, due)
	if err != nil {
		return err
	}
	for id := range held {
		e.sights.watch(id)
	}
	look, err := e.look(ctx, held)
	if err != nil {
		return err
	}
	var tx watermark.Transaction
	left, now, limit := map[int64]string{}, e.cfg.now(), e.cfg.Session.MaxRows()
	for _, id := range slices.Sorted(maps.Keys(due)) {
		c, a := held[id], e.missing[id]
		switch why := e.keepReason(id, c, look, due[id]); {
		case c == nil && a.swept != 0:
			left[id] = "" // the sweep has taken the dead letter out
		case c == nil:
			left[id] = "the topic holds no such row"
		case why != "":
			left[id] = why
		case a.since.IsZero() || a.restarts && now.Before(a.until):
			if a.until.IsZero() {
				a.until = now.Add(2 * e.cfg.Overlap)
			}
			if a.since, a.restarts = now, false; !look.done.Complete {
				a.swept = e.cfg.wall()
			}
		case a.restarts:
			left[id] = "it came and went while it was looked for"
		default: // not shown for an overlap, or it would not be due
			e.state.delete(&tx, id, c.strays, due[id], e.cfg.wall())
			left[id] = ""
		}
		e.missing[id] = a
		if tx.Len() >= limit { // the others are due still
			break
		}
	}
	for id, why := range left {
		delete(e.missing, id)
		e.sights.forget(id)
		if why == "" {
			e.cfg.Log.Info("row erased, as it was asked for", zap.Int64("id", id))
		} else {
			e.cfg.Log.Warn("row not erased, although that was asked for", zap.Int64("id", id), zap.String("why", why))
		}
	}
	if len(left) == 0 {
		return nil
	}
	e.state.mark.EndErase(left, e.cfg.wall())
	return e.writer.commit(tx)
}

// eraseLook is what one look at the source came to.
type eraseLook struct {
	shown    map[int64]bool // rows, also those that cannot be published
	nameless bool           // there were rows without a usable id
	done     Done
}

// held returns the copies of each row that has a record in the topic, or a dead letter.
func (e *eraser) held(ctx context.Context, rows map[int64]bool) (map[int64]*copies, error) {
	all := map[int64]*copies{}
	for id := range rows {
		all[id] = &copies{updatedAt: schemas.MinInstant, createdAt: schemas.MinInstant}
	}
	wanted := func(id int64) bool { return all[id] != nil }
	_, err := e.cfg.Sweep.Topic(ctx, nil, wanted, func(p watermark.Published) error {
		c := all[p.ID]
		switch {
		case p.Foreign || c == nil:
		case p.Stray:
			if i := slices.Index(c.strays, p.Partition); p.Tombstone && i >= 0 {
				c.strays = slices.Delete(c.strays, i, i+1)
			} else if !p.Tombstone && i < 0 {
				c.strays = append(c.strays, p.Partition)
			}
		case p.Tombstone:
			c.own = false
		default:
			c.own, c.updatedAt = true, p.UpdatedAt
			c.createdAt = max(c.createdAt, p.CreatedAt)
		}
		return nil
	})
	maps.DeleteFunc(all, func(id int64, c *copies) bool {
		return !c.own && len(c.strays) == 0 && !e.state.deadLetters.has(id)
	})
	return all, err
}

// look looks at rows, on each of the days that their records tell.
func (e *eraser) look(ctx context.Context, rows map[int64]*copies) (*eraseLook, error) {
	var suspects []Suspect
	for id, row := range rows {
		suspects = append(suspects, Suspect{ID: id, UpdatedAt: row.updatedAt, CreatedAt: row.createdAt})
	}
	look := &eraseLook{shown: map[int64]bool{}}
	if len(suspects) == 0 {
		return look, nil
	}
	for b, err := range e.read(ctx, e.state.lookup(suspects, e.cfg.wall())) {
		if err != nil {
			return nil, err
		}
		for i := range b.Rows {
			look.shown[b.Rows[i].ID] = true
		}
		for i := range b.Rejects {
			if b.Rejects[i].HasID {
				look.shown[b.Rejects[i].ID] = true
			} else {
				look.nameless = true
			}
		}
		if b.Done != nil {
			look.done = *b.Done
		}
	}
	return look, nil
}

// keepReason returns why a row has to stay after a look, or "" if it may go. confirmed is Erase.Confirmed.
func (e *eraser) keepReason(id int64, c *copies, look *eraseLook, confirmed bool) string {
	byDay := !look.done.Complete
	switch {
	case c == nil:
		return ""
	case look.shown[id]:
		return "the service has it"
	case look.nameless:
		return "the service shows rows without a usable id, and it may be one of them"
	case look.done.Empty:
		return "the service shows no row at all: " + notForDeletion
	case byDay && (e.cfg.Sweep.Source == nil || e.cfg.Eager):
		return "only a sweep reads enough of the service to tell that it is gone, and this instance makes none"
	case byDay && e.sweptSince(e.missing[id].swept) && e.state.deadLetters.has(id):
		return e.letterReason(id)
	case confirmed:
		return ""
	}
	if rows, left := e.state.budget(0, e.cfg.wall()); left == 0 {
		return fmt.Sprintf("%d rows were deleted today (UTC) without a confirmation, which is the day's limit (to "+
			"delete this one too: storestream erase %s %d --confirm-deletes 1)", rows, e.cfg.Resource.Name, id)
	}
	return ""
}

// letterReason returns why a row stays whose dead letter the sweep did not take out.
func (e *eraser) letterReason(id int64) string {
	if e.state.deadLetters.metInRound(id) {
		return "it has a dead letter, and the service has it still, as a row that cannot be published"
	}
	return "it has a dead letter, and the sweep that was made for it did not take that out: " +
		cmp.Or(e.state.mark.Swept.Left, "it did not compare all rows")
}

// sweptSince reports whether a sweep that began at the given time or later is over. It is false for the zero
// time.
func (e *eraser) sweptSince(at schemas.Instant) bool {
	swept := e.state.mark.Swept
	return at != 0 && swept != nil && swept.Began >= at
}

// due returns the rows to look at now, with their Erase.Confirmed: those never looked at, those not shown for
// an overlap, and those whose sweep is over. It also asks for the sweeps that rows wait for.
func (e *eraser) due() map[int64]bool {
	for id := range e.sights.take() {
		a := e.missing[id]
		a.restarts = true
		e.missing[id] = a
	}
	now, rows, mark := e.cfg.now(), map[int64]bool{}, &e.state.mark
	for _, row := range mark.Erase {
		a := e.missing[row.ID]
		switch {
		case a.swept != 0 && !e.sweptSince(a.swept):
			if mark.Sweep == nil {
				mark.Sweep = &watermark.Sweep{Request: -1, At: e.cfg.wall()}
			}
		case now.Sub(a.since) >= e.cfg.Overlap:
			rows[row.ID] = rows[row.ID] || row.Confirmed
		}
	}
	return rows
}
