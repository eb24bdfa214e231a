package poller

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// mend takes the last look and repairs what differs, in transactions of the poller.
//
// Missing and stale rows are published as the look showed them: the topic has nothing newer (see sweep). seen is not asked, for it knows what was
// published and not what somebody did to the topic since. A row that is older than what the topic or seen has is published when the service has
// shown that state for an overlap, as any older row is (older.go), and a row is taken for gone when it has not been shown for as long: over REST a row that
// was updated may be nowhere for a while. Until then the sweep waits and looks again.
func (p *Poller) mend(ctx context.Context, stop <-chan struct{}) error {
	s := p.sweep
	p.showSweep("repairing")
	if err := p.lookNow(ctx, stop); err != nil {
		if interrupted(ctx, stop, err) {
			return err
		}
		p.sweepFailed(err)
		return nil
	}
	var tx watermark.Transaction
	for i := range s.fresh {
		p.reject(&tx, &s.fresh[i], schemas.MinInstant)
	}
	s.dead = nil
	now := p.Now()
	if s.until.IsZero() {
		s.until = now.Add(2 * p.Overlap)
	}
	if err := p.clearStrays(ctx, now); err != nil {
		return err
	}
	var left []compare.Difference
	var next time.Time // when something of what is left can be dealt with
	for _, d := range s.cmp.Differences() {
		due := p.confirmedAt(&d)
		if now.Before(due) && (next.IsZero() || due.Before(next)) {
			next = due
		}
		if d.Kind == compare.Extra || now.Before(due) {
			left = append(left, d)
			continue
		}
		p.republish(&tx, &d)
		if err := p.writeIfFull(ctx, &tx); err != nil {
			return err
		}
	}
	if !next.IsZero() && now.Before(s.until) {
		s.due = next
		p.showSweep("waiting to look again")
		return p.writeIfDue(ctx, tx)
	}
	return p.finishSweep(ctx, tx, left)
}

// confirmedAt is from when on a difference may be repaired; the zero time: at once.
func (p *Poller) confirmedAt(d *compare.Difference) time.Time {
	if d.Kind == compare.Extra && p.Sweep.Tombstone {
		return d.Since.Add(p.Overlap)
	} else if d.Kind == compare.Extra {
		return time.Time{}
	}
	newest := int64(math.MinInt64)
	if d.Kind == compare.Stale {
		newest = d.TopicMillis
	}
	if before, known := p.seen.Get(d.ID); known {
		newest = max(newest, before.Millis)
	}
	if d.Row.UpdatedAt.Millis() >= newest {
		return time.Time{}
	}
	return d.Since.Add(p.Overlap)
}

// republish puts a row into tx.
func (p *Poller) republish(tx *watermark.Transaction, d *compare.Difference) {
	s := p.sweep
	s.cmp.Forget(d.ID)
	if !p.add(tx, d.Row, schemas.Hash(d.Row.Value)) {
		s.result.DeadLetters++
		return
	}
	if d.Kind == compare.Missing {
		s.result.Missing++
	} else {
		s.result.Stale++
	}
	s.result.Published++
}

// clearStrays writes tombstones over the records that do not belong where they lie, of the rows that are published next. In transactions of their own, before:
// whoever keeps rows by key, from all partitions, takes the tombstone for the row's, and is right again by the row that comes after it.
func (p *Poller) clearStrays(ctx context.Context, now time.Time) error {
	var tx watermark.Transaction
	for _, d := range p.sweep.cmp.Differences() {
		if d.Kind == compare.Extra || now.Before(p.confirmedAt(&d)) {
			continue
		}
		for _, partition := range d.Strays {
			tx.Strays = append(tx.Strays, watermark.Stray{ID: d.ID, Partition: partition})
			p.sweep.result.Tombstones++
			if err := p.writeIfFull(ctx, &tx); err != nil {
				return err
			}
		}
	}
	if len(tx.Strays) == 0 {
		return nil
	}
	return p.write(ctx, tx)
}

// writeIfFull writes tx when it holds as much as one transaction should.
func (p *Poller) writeIfFull(ctx context.Context, tx *watermark.Transaction) error {
	if len(tx.Rows)+len(tx.Deletes)+len(tx.Strays)+len(tx.DeadLetters) < p.MaxRows() {
		return nil
	}
	full := *tx
	*tx = watermark.Transaction{}
	return p.write(ctx, full)
}

// finishSweep deals with what is left, and says in the last transaction that the sweep is done.
func (p *Poller) finishSweep(ctx context.Context, tx watermark.Transaction, left []compare.Difference) error {
	s := p.sweep
	report, count := s.cmp.Report(), s.cmp.Count()
	r := &s.result
	r.Request, r.Began, r.SourceRows, r.TopicRows = s.request, s.began, report.SourceRows, report.TopicRows
	r.DeadLetters += report.DeadLetters
	r.Missing, r.Stale, r.Extra = r.Missing+count[compare.Missing], r.Stale+count[compare.Stale], count[compare.Extra]
	var why []string
	if n := len(left) - extras(left); n > 0 {
		why = append(why, fmt.Sprintf("%d rows are older than what the topic has, and the service did not show them the same for %s", n, p.Overlap))
	}
	reason, err := p.dropGone(ctx, &tx, left, report, count[compare.Extra])
	if err != nil {
		return err
	}
	if reason != "" {
		why = append(why, reason)
	}
	if report.Untracked > 0 {
		why = append(why, fmt.Sprintf("%d rows more differ than one sweep takes in", report.Untracked))
	}
	r.Left = strings.Join(why, "; ")
	if err := p.dropLetters(ctx, &tx, report, count[compare.Extra]); err != nil {
		return err
	}
	// With too many rows to take in at once a sweep begins anew, as long as that brings anything.
	finished := report.Untracked == 0 || r.Published+r.Tombstones == 0
	if finished {
		p.mark.LastSweep, p.mark.Swept = schemas.InstantOf(p.Now()), r
		if p.mark.Sweep != nil && p.mark.Sweep.Request == s.request {
			p.mark.Sweep = nil
		}
	}
	if err := p.write(ctx, tx); err != nil {
		return err
	}
	p.sweepDone(finished)
	return nil
}

// sweepDone counts, logs and shows what the sweep came to.
func (p *Poller) sweepDone(finished bool) {
	r := p.sweep.result
	p.sweepFailures, p.sweepNext = 0, time.Time{}
	p.Metrics.LateRows.Add(float64(r.Published))
	for kind, n := range map[compare.Kind]int{compare.Missing: r.Missing, compare.Stale: r.Stale, compare.Extra: r.Extra} {
		p.Metrics.SweepDifferences(string(kind)).Add(float64(n))
	}
	say, what := p.Log.Info, "sweep finished"
	if r.Left != "" {
		say = p.Log.Warn
	}
	if !finished {
		what = "sweep begins anew, for there is more to repair"
	}
	say(what, zapRequest(r.Request), zap.Int("source_rows", r.SourceRows), zap.Int("topic_rows", r.TopicRows), zap.Int("dead_letters", r.DeadLetters),
		zap.Int("missing", r.Missing), zap.Int("stale", r.Stale), zap.Int("extra", r.Extra), zap.Int("published", r.Published),
		zap.Int("tombstones", r.Tombstones), zap.String("left", r.Left))
	p.endSweep()
}
