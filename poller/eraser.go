package poller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// eraser deletes single rows from the topic that somebody has asked for, and that the source has no longer.
//
// It works in the poller's goroutine, as repair does and for the same reason, after a poll that went well. It
// looks at once: a row that the source shows stays, and that is the answer. One that it does not show is
// looked for again an overlap later, for over REST a row that is being updated may be nowhere for a while. It
// is deleted when it was not shown then either. What waits is in the watermark; since when a row was not
// shown is not, so a new owner begins with its first look.
//
// What a look did not show is as good as deleted only where the look was able to show it. So, as in a sweep,
// an empty answer is no evidence, and neither is one with rows whose id nobody can read. And a row that has
// lost its created_at is on no day of that: it is looked for on the day of its updated_at too. The days are
// those of the topic's newest record of the row. Whoever asks cannot name them: by a false one a row would be
// deleted that the source has.
type eraser struct {
	cfg       *Config
	publisher *publisher
	reader    *reader
	// missing is since when the source has not shown a row.
	missing map[int64]time.Time
}

// step looks at the rows that are due. Its error is that of the look, or a *writeError.
func (e *eraser) step(ctx context.Context, stop <-chan struct{}) error {
	due := e.due()
	if len(due) == 0 {
		return nil
	}
	held, err := e.held(ctx, stop, due)
	if err != nil {
		return err
	}
	look, err := e.look(ctx, stop, held)
	if err != nil {
		return err
	}
	var tx watermark.Transaction
	left, now := map[int64]string{}, e.cfg.Now()
	for i := range due {
		id := due[i].ID
		since, looked := e.missing[id]
		p, inTopic := held[id]
		if !inTopic {
			left[id] = "the topic holds no such row"
			continue
		}
		switch why := e.keepReason(p, look); {
		case why != "":
			left[id] = why
		case !looked:
			e.missing[id] = now
		case now.Sub(since) >= e.cfg.Overlap:
			left[id] = ""
			e.publisher.delete(&tx, id)
		}
	}
	for id, why := range left {
		delete(e.missing, id)
		if why == "" {
			e.cfg.Log.Info("row erased, as it was asked for", zap.Int64("id", id))
		} else {
			e.cfg.Log.Warn("row not erased, although that was asked for", zap.Int64("id", id), zap.String("why", why))
		}
	}
	if len(left) == 0 {
		return nil
	}
	e.publisher.mark.EndErase(left, e.cfg.Clock())
	return e.publisher.commit(ctx, tx)
}

// eraseLook is what one look at the source came to.
type eraseLook struct {
	shown    map[int64]bool // rows, also those that cannot be published
	nameless bool           // there were rows without a usable id
	done     Done
}

// held is the topic's newest record of each row that it holds. When stop is closed it ends with an error.
func (e *eraser) held(ctx context.Context, stop <-chan struct{}, rows []watermark.Erase) (
	map[int64]watermark.Published, error) {
	ctx, cancel := wait.Until(ctx, stop)
	defer cancel()
	held := map[int64]watermark.Published{}
	due := func(id int64) bool {
		return slices.ContainsFunc(rows, func(row watermark.Erase) bool { return row.ID == id })
	}
	_, err := e.cfg.Sweep.Topic(ctx, nil, due, func(p watermark.Published) error {
		switch {
		case p.Stray, p.Foreign:
		case p.Tombstone:
			delete(held, p.ID)
		default:
			held[p.ID] = p
		}
		return nil
	})
	return held, err
}

// look looks at rows, on each of the days that their records tell.
func (e *eraser) look(ctx context.Context, stop <-chan struct{}, rows map[int64]watermark.Published) (
	*eraseLook, error) {
	var suspects []Suspect
	for id, row := range rows {
		suspects = append(suspects,
			Suspect{ID: id, UpdatedAt: schemas.MinInstant, CreatedAt: row.CreatedAt},
			// One of its own: where both are known only created_at is gone by.
			Suspect{ID: id, UpdatedAt: row.UpdatedAt, CreatedAt: schemas.MinInstant})
	}
	look := &eraseLook{shown: map[int64]bool{}}
	if len(suspects) == 0 {
		return look, nil
	}
	err := e.reader.read(ctx, stop, e.publisher.lookup(suspects), func(b Batch) error {
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
		return nil
	})
	return look, err
}

// keepReason says why a look does not show that a row is deleted, "" if it does.
func (e *eraser) keepReason(row watermark.Published, look *eraseLook) string {
	everywhere := look.done.Complete
	switch {
	case look.shown[row.ID]:
		return "the service has it"
	case look.nameless:
		return "the service shows rows without a usable id, and it may be one of them"
	case row.CreatedAt == schemas.MinInstant && !everywhere:
		return "no record of it tells the day on which to look for it in the service"
	case look.done.Empty:
		return "the service shows no row at all: " + notForDeletion
	case !everywhere && e.publisher.deadLetters.has(row.ID):
		// The service had it in a state that cannot be published, so it may be on a day that no record tells.
		return fmt.Sprintf("it has a dead letter, and may be on another day than its record in the topic tells: "+
			"storestream sweep %s finds out", e.cfg.Resource.Name)
	}
	return ""
}

// due are the rows to look at now: those never looked at, and those not shown for an overlap.
func (e *eraser) due() (rows []watermark.Erase) {
	now := e.cfg.Now()
	for _, row := range e.publisher.mark.Erase {
		if since, looked := e.missing[row.ID]; !looked || now.Sub(since) >= e.cfg.Overlap {
			rows = append(rows, row)
		}
	}
	return rows
}
