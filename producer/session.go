package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Session is the exclusive right to write one resource's topic, from Take until the first error that is ErrLost, or Close. One goroutine uses it.
type Session struct {
	c        *Cluster
	log      *zap.Logger
	resource *schemas.Resource
	topic    topicInfo
	keyID    int
	valueID  int
	limits   map[string]int // largest batch in bytes, by topic
	pace     *pace

	cl     *kgo.Client
	batch  batch
	open   bool // a transaction has begun and not ended
	lost   bool
	closed bool

	mark    watermark.Watermark
	letters map[string]uint64
}

// Watermark is the last one that is known to be committed.
func (s *Session) Watermark() watermark.Watermark { return s.mark }

// Letters are the dead letters of this resource that the topic holds: key to watermark.DeadLetterHash of the row. Commits keep it up to date;
// the caller does not change it.
func (s *Session) DeadLetters() map[string]uint64 { return s.letters }

// MaxRows is the most rows that a transaction should hold: fewer after one that took too long.
func (s *Session) MaxRows() int { return s.pace.rows() }

// MaxRecordBytes is the longest value, header included, that the data topic takes.
func (s *Session) MaxRecordBytes() int { return s.limits[s.topic.name] - recordOverhead }

// EndOffsets are where the data topic's partitions end now, by partition.
func (s *Session) EndOffsets(ctx context.Context) ([]int64, error) {
	return s.c.offsets(ctx, s.c.admin.ListEndOffsets, s.topic.name)
}

// closeTimeout bounds Close: the group waits for a resource that it takes away.
const closeTimeout = 5 * time.Second

// Close gives the right back: it ends an open transaction by aborting it, so that what it hides from readers of the watermark topic shows at once and
// not after the transaction's timeout. It takes seconds at most, and may be called again.
func (s *Session) Close() {
	if s.closed {
		return
	}
	if s.open && !s.lost {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.abort(ctx); err != nil {
			s.log.Warn("an open transaction could not be aborted: the broker does so after its timeout", zap.Error(err))
		}
	}
	s.end()
}

// Lost ends the session without a word to the broker: another may own the topic already.
func (s *Session) Lost() {
	if !s.closed {
		s.end()
	}
}

func (s *Session) end() {
	s.closed = true
	if s.cl != nil {
		s.cl.Close()
	}
}

// newTransactional makes the client that writes one resource. Everything about it is bounded in time: a transaction that cannot be finished is
// better known as failed than hoped for.
func (c *Cluster) newTransactional(resource string, limits map[string]int) (*kgo.Client, error) {
	return c.client(
		kgo.TransactionalID(c.transactionalID(resource)),
		kgo.TransactionTimeout(c.cfg.TransactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(placed{kgo.StickyKeyPartitioner(nil)}), // murmur2 of the key, as the Java client
		// Of a first load's CPU lz4 took a fifth, snappy a tenth; and each of lz4's writers holds 8 MB.
		kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			if limit, ok := limits[topic]; ok {
				return int32(limit)
			}
			return 1 << 20
		}),
		// A transaction is flushed whole, so lingering delays nothing; full batches go out at once.
		kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(1<<20),
		kgo.MaxBufferedBytes(128<<20),
		// Not RecordDeliveryTimeout: the client counts it from the record's own time, which is a row's updated_at, so that every row of history
		// would have timed out before it was sent. Commit bounds its writing by a context.
		kgo.ProduceRequestTimeout(10*time.Second),
		kgo.UnknownTopicRetries(2),
	)
}

// usable says why the session cannot be used any more.
func (s *Session) usable() error {
	if s.lost || s.closed {
		return fmt.Errorf("%w: it has ended", ErrLost)
	}
	return nil
}

// lose marks the session as lost and says why.
func (s *Session) lose(step string, err error) error {
	s.lost = true
	return &stepError{step, errors.Join(ErrLost, err)}
}

// stepError reads "<step>: <cause>" for a cause that was joined to a sentinel.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string {
	joined, ok := e.err.(interface{ Unwrap() []error })
	if !ok {
		return e.step + ": " + e.err.Error()
	}
	text := e.step
	for _, err := range joined.Unwrap() {
		text += ": " + err.Error()
	}
	return text
}

func (e *stepError) Unwrap() error { return e.err }
