package poller

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// repair repairs the differences that count of the part of a sweep in hand, unless a further look may confirm
// more. The watermark of the last transaction says that the part is over, and which differences are left.
func (s *sweeper) repair() error {
	if s.waits() {
		return nil
	}
	c, sweep := s.inHand.Report(), s.state.mark.Sweep
	total := watermark.Swept{Request: sweep.Request, RequestUID: sweep.RequestUID, Began: s.inHand.began}
	if sweep.Done != nil {
		total = *sweep.Done
	}
	count, restless, unmet := map[reconcile.Kind]int{}, 0, 0
	var differences []reconcile.Difference
	for _, d := range s.inHand.Differences() {
		switch count[d.Kind]++; {
		case d.Counts:
			differences = append(differences, d)
		case d.Kind == reconcile.Unknown && d.Row != nil:
			unmet++
		default:
			restless++
		}
	}
	part := watermark.Swept{SourceRows: c.SourceRows, TopicRows: c.TopicRows, DeadLetters: c.DeadLetters,
		Early: c.Early, Missing: count[reconcile.Missing], Stale: count[reconcile.Stale],
		Extra: count[reconcile.Extra]}
	c.Empty = c.Empty || !c.Shown && total.SourceRows == 0 && (c.TopicRows > 0 || c.DeadLetters == 0)
	doubt := doubtThatGone(c, part.Extra)
	topicRows := total.TopicRows + c.TopicRows
	budget, left := s.state.budget(topicRows, s.cfg.wall())
	if doubt == "" && s.cfg.Sweep.Tombstone && part.Extra > max(sweep.ConfirmedDeletes, left) {
		doubt = fmt.Sprintf("the service does not have %d of the topic's %d rows. Without a confirmation %d may "+
			"be deleted in a day (UTC), and %d were today: these rows stay (if the service deleted them: storestream "+
			"sweep %s --confirm-deletes %d)", part.Extra, topicRows, budget, budget-left, s.cfg.Resource.Name,
			part.Extra+max(0, total.Extra-total.Tombstones))
	}
	var unconfirmed, unshown, unread, kept string
	if restless > 0 {
		unconfirmed = fmt.Sprintf("%s came and went, or changed, while they were looked at: they are left as they "+
			"are, and the next sweep compares them again", terminal.Plural(restless, "row"))
	}
	if unmet > 0 {
		unshown = terminal.Plural(unmet, "row") + " of the topic did not come when all rows were read (over REST " +
			"by created_*), and came when they were looked for (by updated_*): not all rows were compared"
	}
	if c.Unread > 0 {
		unread = fmt.Sprintf("%d batches of another program in the topic could not be read, and may hold any row",
			c.Unread)
	}
	if part.Extra > 0 && doubt == "" && !s.cfg.Sweep.Tombstone {
		kept = "left in the topic (sweep.deletes: report): " + terminal.Plural(part.Extra, "row") +
			" that the service does not have"
	} else if part.Extra > 0 {
		kept = doubt
	}
	tx, err := s.write(differences, &part, doubt != "", kept != "")
	if err != nil {
		return err
	}
	part.Left = joined(unconfirmed, unshown, unread, kept, s.state.deadLetters.delays())
	return s.endPart(tx, part, total.Plus(part))
}

// write writes what repairs these differences, and returns the transaction that is not full yet. Its error
// is that of a row for which memory has no room.
//
// Missing and stale rows are published as the looks showed them, although dedup may know them as published:
// another program may have changed the topic since. Extra rows are deleted, unless they are kept. Each
// counts against the number that the request confirms first, and then against the day's budget. Dead letters
// are taken out whose rows are well or gone, and those of rows without a usable id that no read has met
// since the sweep began. If there is doubt, no row is gone.
//
// Tombstones over the strays of a row come before it, in transactions of their own: a consumer that keeps
// rows by key, from all partitions, takes such a tombstone for the row's own until the row comes.
func (s *sweeper) write(differences []reconcile.Difference, part *watermark.Swept, doubt, keep bool) (
	tx watermark.Transaction, err error) {
	state, wall := s.state, s.cfg.wall()
	for _, d := range differences {
		for _, stray := range d.Strays {
			if d.Row != nil {
				tx.Strays = append(tx.Strays, watermark.Stray{ID: d.ID, Partition: stray.Partition})
				part.Tombstones++
				s.writer.commitIfFull(&tx)
			}
		}
	}
	if len(tx.Strays) > 0 {
		s.writer.commitAll(&tx)
	}
	nameless := s.inHand.Nameless()
	for i := range nameless {
		state.writeLetter(&tx, &nameless[i])
		s.writer.commitIfFull(&tx)
	}
	for _, d := range differences {
		switch {
		case d.Reject != nil:
			state.writeLetter(&tx, d.Reject)
		case d.Kind == reconcile.Missing, d.Kind == reconcile.Stale:
			put, err := state.add(&tx, d.Row, schemas.Hash(d.Row.Value), false, wall)
			switch {
			case err != nil: // there is no room for it
				return tx, cmp.Or(s.writer.commitIfDue(tx), err)
			case put:
				part.Published++
			case d.Kind == reconcile.Missing:
				part.Missing--
				part.DeadLetters++
			default:
				part.Stale--
				part.DeadLetters++
			}
		case d.Kind == reconcile.Extra && !keep:
			confirmed := state.mark.Sweep.ConfirmedDeletes > 0
			if confirmed {
				state.mark.ChangeSweep(func(x *watermark.Sweep) { x.ConfirmedDeletes-- })
			}
			state.delete(&tx, &d, confirmed, wall)
			part.Tombstones++
		case d.Row != nil:
			state.heal(&tx, d.ID)
		case !doubt:
			state.deadLetters.takeOut(&tx, d.ID)
		}
		s.writer.commitIfFull(&tx)
	}
	first, last := s.inHand.Part()
	if !doubt && s.inHand.kind == watermark.Sweeps && first == math.MinInt64 && last == math.MaxInt64 &&
		s.inHand.Report().Nameless <= len(nameless) {
		for _, key := range state.deadLetters.unmet() {
			state.deadLetters.remove(&tx, key)
			s.writer.commitIfFull(&tx)
		}
	}
	return tx, nil
}

// doubtThatGone returns the reason why rows that the service does not show are not taken for deleted, or "".
func doubtThatGone(c reconcile.Report, gone int) string {
	switch {
	case c.Empty: // a table restored empty, a filter that changed
		return "the service showed no row at all: an empty answer is not taken for deletion"
	case gone > 0 && c.Nameless > 0:
		return fmt.Sprintf("%s of the service came without a usable id, and may be rows that it seems not to "+
			"have: they are not taken for deleted", terminal.Plural(c.Nameless, "row"))
	}
	return ""
}

// endPart writes the last transaction of a part, and then counts and logs the part. The sweep goes on behind
// the part's last id, if there are ids behind it.
func (s *sweeper) endPart(tx watermark.Transaction, part, total watermark.Swept) error {
	mark, result := &s.state.mark, part
	say, what := s.cfg.Log.Info, "part of the sweep finished"
	if _, last := s.inHand.Part(); last == math.MaxInt64 {
		mark.LastSweep, mark.Swept, mark.Sweep = s.cfg.wall(), &total, nil
		sweptPolicies(s.cfg, mark, total)
		result, what = total, "sweep finished"
	} else {
		next := last + 1
		mark.ChangeSweep(func(x *watermark.Sweep) {
			x.From, x.Done, x.Tried, x.Attempts, x.Failure = &next, &total, nil, 0, ""
		})
	}
	if err := s.writer.commit(tx); err != nil {
		return err
	}
	s.cfg.Metrics.LateRows.Add(float64(part.Published))
	for kind, n := range map[reconcile.Kind]int{reconcile.Missing: part.Missing, reconcile.Stale: part.Stale,
		reconcile.Extra: part.Extra} {
		s.cfg.Metrics.SweepDifferences(string(kind)).Add(float64(n))
	}
	if result.Left != "" {
		say = s.cfg.Log.Warn
	}
	say(what, zapRequest(total.Request), zap.Any("result", result))
	s.done()
	return nil
}

// replay publishes those rows of the part of a replay in hand again that a look has shown as the topic has
// them. Only this owner's polls may publish between the look and this, and CatchUp has read that. So
// the version is still the newest one, and dedup knows it, or need not. A row that the source shows otherwise
// is looked at once more, after the next poll. If it still differs, or has a dead letter now, it is left to
// polls and sweeps: a replay repairs nothing.
//
// The topic says which rows are done. So an owner that takes over after a crash goes on behind them, and does
// not publish them again.
func (s *sweeper) replay() error {
	var tx watermark.Transaction
	mark, left := &s.state.mark, int64(0)
	if mark.Parts[0].Of == 0 {
		mark.ChangePart(func(p *watermark.Part) { p.Of = int64(s.inHand.Report().Wanted + len(p.IDs)) })
	}
	publish := func() error {
		rows := int64(len(tx.Rows))
		mark.ChangePart(func(p *watermark.Part) { p.Rows += rows })
		s.writer.commitAll(&tx)
		return s.writer.failed
	}
	for _, d := range s.inHand.Differences() {
		if d.Kind != reconcile.Replayed || s.state.rowOverhead+len(d.Row.Value) > s.state.maxRecordBytes {
			left++
			continue
		}
		tx.Rows = append(tx.Rows, *d.Row)
		s.inHand.Forget(d.ID)
		if len(tx.Rows) >= s.cfg.Session.MaxRows() {
			if err := publish(); err != nil {
				return err
			}
		}
	}
	if left > 0 && s.inHand.looks < 2 {
		s.inHand.due = time.Time{}
		return publish()
	}
	_, last := s.inHand.Part()
	next := last + 1
	mark.ChangePart(func(p *watermark.Part) { p.Next, p.Left, p.Failure = &next, p.Left+left, "" })
	if last < math.MaxInt64 {
		if err := publish(); err != nil {
			return err
		}
		s.done()
		return nil
	}
	p := &mark.Parts[0]
	done, unshown, absent := p.Ended(s.cfg.wall(), ""), "", ""
	done.Rows += int64(len(tx.Rows))
	if p.Left > 0 {
		unshown = fmt.Sprintf("not published again: %s that the source does not show as the topic has them. Polls "+
			"and sweeps see to these", terminal.Plural(p.Left, "row"))
	}
	if n := s.inHand.Report().Absent; n > 0 {
		absent = terminal.Plural(n, "row") + " that the topic does not have"
	}
	done.Left = joined(unshown, absent)
	mark.End(done)
	mark.Parts = mark.Parts[1:]
	if err := s.writer.commit(tx); err != nil {
		return err
	}
	s.done()
	return nil
}
