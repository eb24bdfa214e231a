package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Commit writes tx as one transaction: a read_committed consumer sees all of it or nothing. It fills in the watermark's Version, Resource, Instance,
// Group, TopicID, Partitions and Written, and stamps the schema ids into the rows' values, which the caller leaves alone until it returns.
//
// nil: committed, and Watermark and Letters say so. ErrAborted: nothing is visible nor will be, and the session may be used again. ErrLost: close it and take
// over anew. Watermark and Letters change on a known commit alone. When ctx ends before the last step the transaction is aborted; the last step,
// which cannot be taken back, is not interrupted but bounded in time.
func (s *Session) Commit(ctx context.Context, tx watermark.Transaction) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.sameTopic(ctx); err != nil {
		return err
	}
	started := time.Now()
	mark, err := s.write(ctx, tx)
	s.pace.note(len(tx.Rows), time.Since(started), s.c.cfg.TransactionTimeout, err != nil)
	if err != nil {
		return err
	}
	s.mark = mark
	s.letters = s.lettersAfter(tx.DeadLetters)
	return nil
}

// sameTopic notices that the data topic was deleted and created again, or given more partitions, while we were writing it: its rows of before are gone, or
// its keys move, and a watermark that went on would hide it.
func (s *Session) sameTopic(ctx context.Context) error {
	now, err := s.c.describe(ctx, s.topic.name, false)
	if err != nil {
		if passing(err) {
			return &stepError{"looking at topic " + s.topic.name, errors.Join(ErrAborted, err)}
		}
		return s.lose("looking at topic "+s.topic.name, err)
	}
	if now.id != s.topic.id || len(now.leaders) != len(s.topic.leaders) {
		return s.lose("looking at topic "+s.topic.name, errors.New("it was created anew, or its partitions were changed"))
	}
	return nil
}

func (s *Session) write(ctx context.Context, tx watermark.Transaction) (watermark.Watermark, error) {
	mark := s.stamp(tx.Watermark)
	if s.batch.fill(s, tx, mark.Written) {
		// The poller took the time of writing for a little earlier than it is, or for later: its clock is read at another moment than ours.
		mark.DedupFrom = min(mark.DedupFrom, mark.Written)
	}
	value, err := watermark.Encode(mark)
	if err != nil {
		return mark, &stepError{"encoding the watermark", errors.Join(ErrAborted, err)}
	}
	if err := s.cl.BeginTransaction(); err != nil {
		return mark, s.lose("beginning a transaction", err)
	}
	s.open = true
	if err := s.produce(ctx, value, mark.Written); err != nil {
		return mark, s.giveUp(err)
	}
	return mark, s.finish()
}

// stamp fills in what the producer knows. Written grows from one watermark to the next whatever the clock does: it orders them.
func (s *Session) stamp(mark watermark.Watermark) watermark.Watermark {
	mark.Version, mark.Resource = watermark.Version, s.resource.Name
	mark.Instance, mark.Group = s.c.cfg.Instance, s.c.cfg.Group
	mark.TopicID, mark.Partitions = s.topic.text(), int32(len(s.topic.leaders))
	mark.Written = max(schemas.InstantOf(s.c.cfg.Now()), s.mark.Written.Add(time.Millisecond))
	return mark
}

// manyRows is from where on the watermark is written after the rows have been, at the price of one more round trip.
const manyRows = 1000

// produce writes the records and waits until the broker has each of them. Every promise is checked: ending a transaction succeeds whatever became of its
// records.
//
// The watermark of a large transaction comes last. What is open in the watermark topic hides the newer watermarks of all other resources in its partition from
// those who take them over, so it should not be open while a hundred thousand rows are on their way.
func (s *Session) produce(ctx context.Context, value []byte, written schemas.Instant) error {
	// Sooner than the broker gives up, so that there is a transaction left to abort.
	ctx, cancel := context.WithTimeout(ctx, s.c.cfg.TransactionTimeout*4/5)
	defer cancel()
	b := &s.batch
	rows := len(b.records)
	b.records = append(b.records, kgo.Record{Topic: s.c.Watermarks(), Key: []byte(s.resource.Name), Value: value, Timestamp: time.UnixMilli(recordMillis(written))})
	steps := [][]kgo.Record{b.records}
	if rows > manyRows {
		steps = [][]kgo.Record{b.records[:rows], b.records[rows:]}
	}
	for _, records := range steps {
		b.send(ctx, s.cl, records)
		if err := s.cl.Flush(ctx); err != nil {
			return fmt.Errorf("writing: %w", errors.Join(context.Cause(ctx), b.refused()))
		}
		if err := b.refused(); err != nil {
			return err
		}
	}
	return nil
}

// finish commits. Every failure here leaves the outcome unknown: even a refusal may be the answer to the client's second try, after a first that was
// carried out.
func (s *Session) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.c.cfg.TransactionTimeout)
	defer cancel()
	s.open = false
	if err := s.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return s.lose("committing", err)
	}
	return nil
}

// giveUp aborts after err. The transaction is known to be aborted when the broker says so to a producer that it still knows.
func (s *Session) giveUp(err error) error {
	if deposed(err) {
		s.open = false
		return s.lose("writing", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if aborting := s.abort(ctx); aborting != nil {
		return s.lose("writing", errors.Join(err, fmt.Errorf("aborting: %w", aborting)))
	}
	return &stepError{"writing", errors.Join(ErrAborted, err)}
}

func (s *Session) abort(ctx context.Context) error {
	if err := s.cl.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	s.open = false
	if err := s.cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return err
	}
	// The client may have healed itself under a new epoch or given up; only an id without an error is worth keeping.
	_, _, err := s.cl.ProducerID(ctx)
	return err
}

// deposed says that the broker no longer takes this producer for the owner of its transactional id, or has ended its transaction, or has lost track
// of it. The client can recover from some of them by asking for a new epoch, but then it would go on without having read what happened meanwhile.
func deposed(err error) bool {
	for _, code := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping, kerr.UnknownProducerID,
		kerr.OutOfOrderSequenceNumber, kerr.OperationNotAttempted, kerr.FencedInstanceID, kerr.TransactionalIDAuthorizationFailed, kgo.ErrClientClosed} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// lettersAfter is the dead letters once those of a transaction are visible.
func (s *Session) lettersAfter(written []watermark.DeadLetter) map[string]uint64 {
	if len(written) == 0 {
		return s.letters
	}
	letters := maps.Clone(s.letters)
	for _, letter := range written {
		if letter.Row == nil {
			delete(letters, letter.Key)
		} else {
			letters[letter.Key] = watermark.DeadLetterHash(letter.Row)
		}
	}
	s.log.Debug("dead letters", zap.Int("written", len(written)), zap.Int("held", len(letters)))
	return letters
}
