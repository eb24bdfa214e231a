package poller

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// repair repairs the differences that count of the part of a sweep in hand, unless a further look may confirm
// more. The watermark of the last transaction says that the part is over, and which differences are left.
//
// Missing and stale rows are published as the looks showed them, although dedup may know them as published:
// another program may have changed the topic since. Extra rows are deleted, if deletion is allowed.
func (s *sweeper) repair() error {
	if s.waits() {
		return nil
	}
	c, mark := s.inHand.Report(), &s.state.mark
	result := watermark.Swept{Request: mark.Sweep.Request, RequestUID: mark.Sweep.RequestUID,
		Began: s.inHand.began, SourceRows: c.SourceRows, TopicRows: c.TopicRows, DeadLetters: c.DeadLetters,
		Early: c.Early}
	var done watermark.Swept
	if mark.Sweep.Done != nil {
		done = *mark.Sweep.Done
	}
	rejects, count := s.inHand.Nameless(), map[reconcile.Kind]int{}
	var rows, extra, leftover []reconcile.Difference
	restless := 0
	for _, d := range s.inHand.Differences() {
		count[d.Kind]++
		switch {
		case d.Kind == reconcile.Unknown:
		case !d.Counts:
			restless++
		case d.Kind == reconcile.Extra:
			extra = append(extra, d)
		case d.Kind == reconcile.Unpublishable:
			rejects = append(rejects, *d.Reject)
		case d.Kind == reconcile.Leftover:
			leftover = append(leftover, d)
		default:
			rows = append(rows, d)
		}
	}
	result.Missing, result.Stale = count[reconcile.Missing], count[reconcile.Stale]
	result.Extra = count[reconcile.Extra]
	doubt := s.doubt(c, result.Extra, done)
	kept := doubt
	switch {
	case result.Extra == 0:
		kept = ""
	case kept == "" && !s.cfg.Sweep.Tombstone:
		kept = "left in the topic (sweep.deletes: report): " + terminal.Plural(result.Extra, "row") +
			" that the service does not have"
	}
	var tx watermark.Transaction
	for i := range rejects {
		s.state.writeLetter(&tx, &rejects[i])
		if err := s.writer.commitIfFull(&tx); err != nil {
			return err
		}
	}
	if err := s.publishRows(&tx, rows, &result); err != nil {
		return err
	}
	if kept != "" {
		leftover, extra = append(leftover, extra...), nil
	}
	if err := s.deleteRows(&tx, extra, &result); err != nil {
		return err
	}
	if err := s.takeOutLetters(&tx, leftover, doubt != ""); err != nil {
		return err
	}
	result.Left = s.left(restless, count[reconcile.Unknown], c.Unread, kept)
	part, _ := s.inHand.Part()
	s.endPart(done, result, part.Last)
	if err := s.writer.commit(tx); err != nil {
		return err
	}
	s.repaired(result)
	return nil
}

// deleteRows deletes extra rows. Each counts against the number that the request confirms first, and then
// against the day's budget.
func (s *sweeper) deleteRows(tx *watermark.Transaction, extra []reconcile.Difference,
	result *watermark.Swept) error {
	for _, d := range extra {
		confirmed := s.state.mark.Sweep.ConfirmedDeletes > 0
		if confirmed {
			s.state.mark.ChangeSweep(func(x *watermark.Sweep) { x.ConfirmedDeletes-- })
		}
		s.state.delete(tx, d.ID, d.Strays, confirmed, s.cfg.wall())
		result.Tombstones++
		if err := s.writer.commitIfFull(tx); err != nil {
			return err
		}
	}
	return nil
}

// takeOutLetters takes out the dead letters of rows that are well or gone, and those of rows without a usable
// id that no read has met since the sweep began. If there is doubt, no row is gone.
func (s *sweeper) takeOutLetters(tx *watermark.Transaction, rows []reconcile.Difference, doubt bool) error {
	for _, d := range rows {
		switch {
		case d.Row != nil:
			s.state.heal(tx, d.ID)
		case !doubt:
			s.state.deadLetters.takeOut(tx, d.ID)
		}
		if err := s.writer.commitIfFull(tx); err != nil {
			return err
		}
	}
	part, _ := s.inHand.Part()
	if doubt || !part.All() || s.inHand.Report().Nameless > len(s.inHand.Nameless()) {
		return nil
	}
	for _, key := range s.state.deadLetters.unmet() {
		s.state.deadLetters.remove(tx, key)
		if err := s.writer.commitIfFull(tx); err != nil {
			return err
		}
	}
	return nil
}

// left names the differences that the sweep leaves, and why. It is "" if there are none.
func (s *sweeper) left(restless, unknown, unread int, kept string) string {
	var left []string
	if restless > 0 {
		left = append(left, fmt.Sprintf("%s came and went, or changed, while they were looked at: the service did "+
			"not show the same for %s", terminal.Plural(restless, "row"), s.cfg.Overlap))
	}
	if unknown > 0 {
		left = append(left, fmt.Sprintf("the service showed %s in one reading and not in a later one: they are "+
			"left as they are, and the next sweep compares them again", terminal.Plural(unknown, "row")))
	}
	if unread > 0 {
		left = append(left, fmt.Sprintf("%d batches of another program in the topic could not be read, and may "+
			"hold any row", unread))
	}
	for _, text := range []string{kept, s.state.deadLetters.delays()} {
		if text != "" {
			left = append(left, text)
		}
	}
	return strings.Join(left, "; ")
}

// publishRows publishes missing and stale rows. Tombstones over their strays come before, in transactions of
// their own: a consumer that keeps rows by key, from all partitions, takes such a tombstone for the row's own
// until the row comes.
func (s *sweeper) publishRows(tx *watermark.Transaction, rows []reconcile.Difference,
	result *watermark.Swept) error {
	for _, d := range rows {
		for _, partition := range d.Strays {
			tx.Strays = append(tx.Strays, watermark.Stray{ID: d.ID, Partition: partition})
			result.Tombstones++
			if err := s.writer.commitIfFull(tx); err != nil {
				return err
			}
		}
	}
	if len(tx.Strays) > 0 {
		if err := s.writer.commit(*tx); err != nil {
			return err
		}
		*tx = watermark.Transaction{}
	}
	for _, d := range rows {
		put, err := s.state.add(tx, d.Row, schemas.Hash(d.Row.Value), false, s.cfg.wall())
		switch {
		case err != nil: // there is no room for it
			return cmp.Or(s.writer.commitIfDue(*tx), err)
		case put:
			result.Published++
		case d.Kind == reconcile.Missing:
			result.Missing--
			result.DeadLetters++
		default:
			result.Stale--
			result.DeadLetters++
		}
		if err := s.writer.commitIfFull(tx); err != nil {
			return err
		}
	}
	return nil
}

// notForDeletion is the remark about an answer without any row: a table restored empty, a filter that
// changed.
const notForDeletion = "an empty answer is not taken for deletion"

// doubt returns the reason why no row that the service does not show counts as deleted, or "". extra is the
// number of the part's extra rows, done the result of the parts before it.
func (s *sweeper) doubt(c reconcile.Report, extra int, done watermark.Swept) string {
	budget, left := s.state.budget(done.TopicRows+c.TopicRows, s.cfg.wall())
	switch {
	case c.Empty, !c.Shown && done.SourceRows == 0 && (c.TopicRows > 0 || c.DeadLetters == 0):
		return fmt.Sprintf("the service showed no row at all when %s of the topic were compared or looked for: %s",
			terminal.Plural(c.TopicRows, "row"), notForDeletion)
	case extra == 0:
		return ""
	case c.Nameless > 0:
		return fmt.Sprintf("%s of the service came without a usable id, and may be some of the %d that it seems "+
			"not to have: they are not taken for deleted", terminal.Plural(c.Nameless, "row"), extra)
	case s.cfg.Sweep.Tombstone && extra > max(s.state.mark.Sweep.ConfirmedDeletes, left):
		return fmt.Sprintf("the service does not have %d of the topic's %d rows. Without a confirmation %d may be "+
			"deleted in a day (UTC), and %d were today: these rows stay (if the service deleted them: storestream "+
			"sweep %s --confirm-deletes %d)", extra, done.TopicRows+c.TopicRows, budget, budget-left,
			s.cfg.Resource.Name, extra+max(0, done.Extra-done.Tombstones))
	}
	return ""
}

// endPart notes in the watermark what a part of the sweep came to. The sweep goes on behind the part's last
// id, if there are ids behind it.
func (s *sweeper) endPart(done, result watermark.Swept, last int64) {
	mark, sweep := &s.state.mark, s.state.mark.Sweep
	total := result
	if sweep.Done != nil {
		total = done.Plus(result)
	}
	if last == math.MaxInt64 {
		mark.LastSweep, mark.Swept, mark.Sweep = s.cfg.wall(), &total, nil
		sweptPolicies(s.cfg, mark, total)
		return
	}
	next := last + 1
	mark.Sweep = &watermark.Sweep{Request: sweep.Request, RequestUID: sweep.RequestUID, At: sweep.At,
		ConfirmedDeletes: sweep.ConfirmedDeletes, From: &next, Done: &total}
}

// repaired counts and logs a part that was repaired.
func (s *sweeper) repaired(r watermark.Swept) {
	s.cfg.Metrics.LateRows.Add(float64(r.Published))
	for kind, n := range map[reconcile.Kind]int{reconcile.Missing: r.Missing, reconcile.Stale: r.Stale,
		reconcile.Extra: r.Extra} {
		s.cfg.Metrics.SweepDifferences(string(kind)).Add(float64(n))
	}
	say, what := s.cfg.Log.Info, "part of the sweep finished"
	if s.state.mark.Sweep == nil {
		r, what = *s.state.mark.Swept, "sweep finished"
	}
	if r.Left != "" {
		say = s.cfg.Log.Warn
	}
	say(what, zapRequest(r.Request), zap.Int("source_rows", r.SourceRows), zap.Int("topic_rows", r.TopicRows),
		zap.Int("dead_letters", r.DeadLetters), zap.Int("missing", r.Missing), zap.Int("stale", r.Stale),
		zap.Int("extra", r.Extra), zap.Int("published", r.Published), zap.Int("tombstones", r.Tombstones),
		zap.String("left", r.Left))
	s.done()
}
