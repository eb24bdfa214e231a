package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// idleWrite is how often a watermark is written that says nothing new but the time. Kafka keeps all of them
// until a segment rolls: at one a second a takeover would read half a gigabyte after some months.
const idleWrite = 10 * time.Second

// writer commits transactions, each with the watermark of the state, and then shows, counts and logs
// them. After a commit that failed it writes nothing more, and the poller ends: the state runs ahead of
// the topic (state), and a watermark that is written now would pass over the rows that failed.
type writer struct {
	cfg   *Config
	board *board
	state *state
	// commits is the context of every transaction. A stop and a request do not end it (outliving).
	commits context.Context    //nolint:containedctx // Run sets it, and no call outlives Run
	failed  error              // of the commit that failed, or nil
	written time.Time          // when the last transaction was committed
	results []watermark.Result // those of the last transaction
	told    *watermark.Trouble // that was committed last
	// wait replaces the watermark's Trouble while the service asked for a pause. nil: it did not.
	wait *watermark.Trouble
}

// commit writes tx with the watermark as the state has it.
func (w *writer) commit(tx watermark.Transaction) error {
	if w.failed != nil {
		return w.failed
	}
	now := w.cfg.now()
	w.state.seal(&tx, w.cfg.wall())
	if trouble := w.trouble(); trouble != nil {
		shown := *trouble
		shown.Why = w.cfg.Hide(shown.Why)
		tx.Watermark.Trouble = &shown
	}
	if w.failed = w.cfg.Session.Commit(w.commits, tx); w.failed != nil {
		return w.failed
	}
	w.state.dedup.committed(w.state.mark.Settled, now)
	for _, r := range tx.Watermark.Results {
		if !slices.Contains(w.results, r) {
			w.cfg.Log.Info("replay finished", zap.String("kind", string(r.Kind)), zapRequest(r.Request),
				zapInstant("from", r.From), zap.Int64("rows", r.Rows), zap.String("left", r.Left))
		}
	}
	w.written, w.results = now, tx.Watermark.Results
	w.told = tx.Watermark.Trouble
	w.cfg.Metrics.RowsPublished.Add(float64(len(tx.Rows)))
	w.cfg.Published(tx.Rows, tx.Deletes)
	for _, letter := range tx.DeadLetters {
		if letter.Row != nil {
			field := cmp.Or(letter.Field, "row")
			w.cfg.Metrics.DeadLetters(field).Inc()
			w.cfg.Log.Warn("row cannot be published, written to dead letters", zap.String("letter", letter.Key),
				zap.String("field", field), zap.String("why", letter.Err))
		}
	}
	w.show()
	return nil
}

// commitIfDue commits tx unless it would say nothing new but the time. It is news that rows wait, or no
// longer do: verify waits for rows that are deferred. Any other delay of settling may come and go with every
// poll, and a reason has numbers and times in it. So these wait for the next watermark.
func (w *writer) commitIfDue(tx watermark.Transaction) error {
	s, now := w.state, w.cfg.now()
	if w.failed != nil {
		return w.failed
	}
	waits := func(t *watermark.Trouble) bool {
		return t != nil && (!t.SettlingDelayed() || t.Until != nil)
	}
	news := tx.Len() > 0 || w.cfg.Eager || s.mark.Replay != nil && s.mark.Pause == nil ||
		!slices.Equal(s.mark.Results, w.results) || waits(w.told) != waits(w.trouble())
	if news || now.Sub(w.written) >= idleWrite {
		return w.commit(tx)
	}
	w.show()
	return nil
}

// commitIfFull commits tx and empties it when it holds as much as one transaction should. If that fails, so
// does every later commit.
func (w *writer) commitIfFull(tx *watermark.Transaction) {
	if tx.Len() >= w.cfg.Session.MaxRows() {
		w.commitAll(tx)
	}
}

// commitAll commits tx and empties it, like commitIfFull.
func (w *writer) commitAll(tx *watermark.Transaction) {
	full := *tx
	*tx = watermark.Transaction{}
	_ = w.commit(full) // the next one returns the error
}

// trouble is the Trouble of the next transaction.
func (w *writer) trouble() *watermark.Trouble { return cmp.Or(w.wait, w.state.mark.Trouble) }

// show counts and logs the state's notes, and puts the state on the board.
func (w *writer) show() {
	s, m := w.state, w.cfg.Metrics
	m.Suppressed(metrics.Repeat).Add(float64(s.repeats))
	m.Suppressed(metrics.Deferred).Add(float64(s.deferrals))
	m.Suppressed(metrics.BeforeStart).Add(float64(s.beforeStart))
	m.DedupFull.Add(float64(s.full))
	for _, key := range s.healed {
		w.cfg.Log.Info("row can be published again, taken out of dead letters", zap.String("letter", key))
	}
	s.repeats, s.deferrals, s.beforeStart, s.full, s.healed = 0, 0, 0, 0, nil
	w.board.change(func(status *Status) {
		status.Watermark, status.Complete = s.mark, s.passes
		if status.Trouble = nil; w.wait != nil || s.judged {
			status.Trouble = w.trouble()
		}
		status.DedupBytes = s.dedup.rows.Bytes()
	})
}

// reportFailure writes into the watermark that a poll ended with a *BlockedError, or that polls have failed
// for a while. It leaves out shorter failures, because most are over before a person could read of them. In a
// first load, for which people wait, it writes every failure at once. The rest of that watermark is true,
// because the rows of a batch are decided before the watermark moves.
func (w *writer) reportFailure(err error, since time.Time) error {
	at := w.cfg.Clock()
	failed := at.Now.Sub(since)
	var blocked *BlockedError
	switch {
	case errors.As(err, &blocked):
		w.state.noteTrouble(watermark.Trouble{Why: blocked.Error(), Since: at.Wall, Publishes: blocked.Publishes,
			LeavesOut: blocked.Publishes}, at)
	case failed >= idleWrite, w.state.mark.AsOf == schemas.MinInstant:
		w.state.mark.Trouble = w.trouble() // a failure goes on from the pause before it
		w.state.noteTrouble(watermark.Trouble{Why: err.Error(), Since: at.Wall.Add(-failed), Failing: true}, at)
	default:
		return nil
	}
	w.wait = nil
	return w.commitIfDue(watermark.Transaction{})
}

// reportWait says in the watermark that the source waits because the service asked for a pause, every
// idleWrite, and when that is over. A pause may be longer than an owner may leave its watermark alone:
// without these transactions the owner would look dead. It is called between two batches, when the
// watermark is true.
func (w *writer) reportWait(why string, since, until time.Time) error {
	at := w.cfg.Clock()
	switch {
	case since.IsZero() && w.wait != nil:
		w.wait = nil
		return w.commitIfDue(watermark.Transaction{})
	case since.IsZero(), until.Before(at.Now), until.Sub(since) < idleWrite, at.Now.Sub(w.written) < idleWrite:
		return nil // also while the answer to the first request after the pause is under way
	}
	w.wait = continued(w.trouble(), watermark.Trouble{Since: at.Wall.Add(since.Sub(at.Now)), Failing: true,
		Why: fmt.Sprintf("waiting for the service: %s. Nothing is sent to it until %s", why,
			at.Wall.Add(until.Sub(at.Now)))})
	return w.commit(watermark.Transaction{})
}
