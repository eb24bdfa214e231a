package poller

import (
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
)

// mostRetried limits the rows of a retry that names none: each is kept in memory with its text.
const mostRetried = 1000

// lookUp acts upon named rows that have dead letters, once looks have confirmed how they are: it publishes what
// a sweep would publish, and takes the letters of rows that are well or gone out. It deletes no row. A retry
// that is cut short begins anew with the next owner, and finds less to do.
func (s *sweeper) lookUp() error {
	if s.waits() {
		return nil
	}
	var published watermark.Swept
	var confirmed []reconcile.Difference
	bad, gone, restless := 0, 0, 0
	for _, d := range s.inHand.Differences() {
		switch {
		case d.Counts:
			confirmed = append(confirmed, d)
			if d.Reject != nil {
				bad++
			} else if d.Kind == reconcile.Extra {
				gone++
			}
		case d.Kind != "": // otherwise both sides have the row
			restless++
		}
	}
	doubt := doubtThatGone(s.inHand.Report(), gone)
	tx, err := s.write(confirmed, &published, doubt != "", true)
	if err != nil {
		return err
	}
	var left [4]string
	if bad += published.DeadLetters; bad > 0 {
		left[0] = terminal.Plural(bad, "row") + " still cannot be published: `storestream dead-letters list` says why"
	}
	if gone > 0 {
		left[1] = "the service does not have " + terminal.Plural(gone, "row") + " of the topic: a sweep decides"
	}
	if restless > 0 {
		left[2] = terminal.Plural(restless, "row") + " came and went, or changed, while they were looked at"
	}
	mark := &s.state.mark
	if others := len(s.state.deadLetters.known) - bad - restless; others > 0 && mark.Parts[0].IDs == nil {
		left[3] = terminal.Plural(others, "other row") + " with dead letters: `storestream sweep` looks at all"
	}
	mark.ChangePart(func(p *watermark.Part) { p.Rows = int64(published.Published) })
	mark.Replayed = mark.Parts[0].Ended(s.cfg.wall(), joined(left[:]...))
	mark.Parts = mark.Parts[1:]
	if err := s.writer.commit(tx); err != nil {
		return err
	}
	s.done()
	return nil
}
