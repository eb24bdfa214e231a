package poller

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
)

// erase acts upon the rows of an erase in hand after a look: it deletes those that count as gone, and answers
// for those that stay. A row that the source shows stays, and that is the answer.
//
// Rows that wait are in the watermark. The time since when a row was not shown is not, so a new owner begins
// with its first look.
func (s *sweeper) erase() error {
	var tx watermark.Transaction
	c, mark, left := s.inHand.Report(), &s.state.mark, map[int64]string{}
	confirmed := map[int64]bool{} // by any of the requests for the row
	for _, asked := range mark.Erase {
		confirmed[asked.ID] = confirmed[asked.ID] || asked.Confirmed
	}
	for _, d := range s.inHand.Differences() {
		doubt := doubtThatGone(c, 1)
		rows, budget := s.state.budget(0, s.cfg.wall())
		switch {
		case d.Row != nil, d.Reject != nil, d.Kind == reconcile.Unknown:
			left[d.ID] = "the service has it"
		case d.Kind == "":
			left[d.ID] = watermark.NoSuchRow
		case doubt != "":
			left[d.ID] = doubt
		case !confirmed[d.ID] && budget == 0:
			left[d.ID] = fmt.Sprintf("%d rows were deleted today (UTC) without a confirmation, which is the day's "+
				"limit (to delete this one too: storestream erase %s %d --confirm-deletes 1)", rows,
				s.cfg.Resource.Name, d.ID)
		case !d.Counts && s.inHand.looks < mostLooks:
			continue
		case !d.Counts:
			left[d.ID] = "it came and went while it was looked for"
		default:
			s.state.delete(&tx, &d, confirmed[d.ID], s.cfg.wall())
			left[d.ID] = ""
		}
		s.inHand.Forget(d.ID)
		if tx.Len() >= s.cfg.Session.MaxRows() {
			mark.EndErase(left, s.cfg.wall())
			s.writer.commitAll(&tx)
		}
	}
	if len(left) > 0 {
		mark.EndErase(left, s.cfg.wall())
		if err := s.writer.commit(tx); err != nil {
			return err
		}
	}
	for id, why := range left {
		if why == "" {
			s.cfg.Log.Info("row erased, as it was asked for", zap.Int64("id", id))
		} else {
			s.cfg.Log.Warn("row not erased, although that was asked for", zap.Int64("id", id), zap.String("why", why))
		}
	}
	if !s.waits() {
		s.done()
	}
	return nil
}

// mostRetried limits the rows of a retry without ids: each is kept in memory with its text.
const mostRetried = 1000

// lookUp acts upon the rows of a retry, once looks have confirmed their state: it publishes rows as a sweep
// does, and takes out the letters of rows that are well or gone. It deletes no row. If its owner dies, the
// next one begins it again.
func (s *sweeper) lookUp() error {
	mark := &s.state.mark
	for _, d := range s.inHand.Differences() {
		// It is well, or bad as its letter says.
		if d.Kind == "" || d.Reject != nil && s.state.deadLetters.meet(d.Reject) {
			s.inHand.Forget(d.ID)
		}
	}
	if s.waits() {
		return nil
	}
	var done watermark.Swept
	var confirmed []reconcile.Difference
	gone := 0
	for _, d := range s.inHand.Differences() {
		if d.Counts {
			confirmed = append(confirmed, d)
			if d.Kind == reconcile.Extra {
				gone++
			}
		}
	}
	tx, err := s.write(confirmed, &done, doubtThatGone(s.inHand.Report(), gone) != "", true)
	if err != nil {
		return err
	}
	part := mark.Parts[0]
	still := len(s.state.deadLetters.known)
	if part.IDs != nil {
		still = 0
		for _, id := range part.IDs {
			if s.state.deadLetters.has(id) {
				still++
			}
		}
	}
	var left [3]string
	if still > 0 {
		left[0] = terminal.Plural(still, "row") +
			" cannot be published yet: `storestream dead-letters list` says why"
	}
	if gone > 0 {
		left[1] = "the service does not have " + terminal.Plural(gone, "row") + " of the topic: a sweep decides"
	}
	if part.Left > 0 {
		left[2] = "no dead letter: " + terminal.Plural(part.Left, "row")
	}
	part.Rows = int64(done.Published)
	mark.End(part.Ended(s.cfg.wall(), joined(left[:]...)))
	mark.Parts = mark.Parts[1:]
	if err := s.writer.commit(tx); err != nil {
		return err
	}
	s.done()
	return nil
}
