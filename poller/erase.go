package poller

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/watermark"
)

// erase acts upon the rows of an erase in hand after a look: it deletes those that count as gone, and answers
// for those that stay. A row that the source shows stays, and that is the answer.
//
// Rows that wait are in the watermark. The time since when a row was not shown is not, so a new owner begins
// with its first look.
func (s *sweeper) erase() error {
	var tx watermark.Transaction
	c, left, mark := s.inHand.Report(), map[int64]string{}, &s.state.mark
	rows := s.inHand.Differences()
	for _, asked := range mark.Erase { // a later request may confirm what an earlier one did not
		if confirmed, sought := s.inHand.erase[asked.ID]; sought {
			s.inHand.erase[asked.ID] = confirmed || asked.Confirmed
		}
	}
	for i, d := range rows {
		confirmed := s.inHand.erase[d.ID]
		why := s.keepReason(&d, c, confirmed)
		switch {
		case why == "" && !d.Counts && s.inHand.looks < mostLooks:
			continue
		case why == "" && !d.Counts:
			why = "it came and went while it was looked for"
		case why == "":
			s.state.delete(&tx, d.ID, d.Strays, confirmed, s.cfg.wall())
		}
		left[d.ID] = why
		s.inHand.Forget(d.ID)
		if tx.Len() >= s.cfg.Session.MaxRows() && i < len(rows)-1 {
			mark.EndErase(left, s.cfg.wall())
			if err := s.writer.commitIfFull(&tx); err != nil {
				return err
			}
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

// keepReason returns why a row has to stay after a look, or "" if it may go. confirmed is Erase.Confirmed.
func (s *sweeper) keepReason(d *reconcile.Difference, c reconcile.Report, confirmed bool) string {
	switch {
	case d.Row != nil, d.Reject != nil, d.Kind == reconcile.Unknown:
		return "the service has it"
	case d.Kind == "":
		return watermark.NoSuchRow
	case c.Nameless > 0:
		return "the service shows rows without a usable id, and it may be one of them"
	case c.Empty:
		return "the service shows no row at all: " + notForDeletion
	case confirmed:
		return ""
	}
	if rows, left := s.state.budget(0, s.cfg.wall()); left == 0 {
		return fmt.Sprintf("%d rows were deleted today (UTC) without a confirmation, which is the day's limit (to "+
			"delete this one too: storestream erase %s %d --confirm-deletes 1)", rows, s.cfg.Resource.Name, d.ID)
	}
	return ""
}
