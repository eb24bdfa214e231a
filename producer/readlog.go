package producer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/storestream/storestream/internal/wait"
)

// span is a part of one partition: offsets from (inclusive) to (exclusive).
type span struct {
	partition int32
	from, to  int64
}

// goOn has spans, which are of all partitions in order, begin at the offsets in from, where those are further
// on. It returns where they end: from, the next time.
func goOn(spans []span, from []int64) (ends []int64) {
	for p := range spans {
		if p < len(from) {
			spans[p].from = max(spans[p].from, from[p])
		}
		ends = append(ends, spans[p].to)
	}
	return ends
}

// length is how many offsets there are in spans.
func length(spans []span) (n int64) {
	for _, s := range spans {
		n += max(0, s.to-s.from)
	}
	return n
}

// forEver is the end of a span that is read until the context ends.
const forEver = int64(1) << 62

// errStop, returned by the function given to readLog, ends the reading of that partition without an error.
var errStop = errors.New("enough")

// readLog gives what was committed in the spans of topic to each, partition by partition in offset order, one
// record at a time.
//
// It is done when every partition's position has reached the end of its span, which the caller noted before.
// Two things would make the simpler loop, "until a record at end-1 has come", wait for ever:
//   - The last offset of a partition is hardly ever a record: it is the marker that ended a transaction, and
//     after compaction it may be nothing at all. So the position counts, which moves over markers and aborted
//     records too. And where it cannot move, a broker that says "nothing here" while its stable offset is at
//     or past the end of the span ends the reading.
//   - Somebody's open transaction hides everything behind it until it ends. The stable offset stands still
//     then, so an empty answer alone does not mean the end. It is waited for; the broker ends a transaction
//     after its timeout.
//
// It asks one partition a request: in an answer that is shared, an empty partition may only mean that the
// others filled it.
func readLog(ctx context.Context, c *Cluster, topic string, spans []span,
	each func(*kgo.Record) error) error {
	group, ctx := errgroup.WithContext(ctx)
	// Partitions are fetched at the same time, and unpacked and folded one answer at a time.
	var turn sync.Mutex
	group.SetLimit(8)
	for _, s := range spans {
		if s.from >= s.to {
			continue
		}
		group.Go(func() error {
			r := logReader{c: c, cl: c.cl, topic: topic, span: s, at: s.from, fetchWait: fetchWait, turn: &turn}
			if s.to != forEver {
				r.patience = c.cfg.TransactionTimeout + noProgress
			}
			err := r.run(ctx, func(records []*kgo.Record) error {
				for _, record := range records {
					if err := each(record); err != nil {
						return err
					}
				}
				return nil
			})
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// logReader reads one span.
type logReader struct {
	c     *Cluster
	cl    *kgo.Client
	topic string
	id    [16]byte // of the topic; zero until the first answer that tells it
	span  span
	at    int64 // the offset that it asks for next
	// fetchWait is how long the broker may wait for data. A broker answers one fetch of a connection after the
	// other, so whoever lets it wait long brings a client of its own: the two seconds of Requests would stand
	// before each fetch of a takeover.
	fetchWait time.Duration
	patience  time.Duration // without progress, before it gives up; 0: for ever
	turn      *sync.Mutex   // held while an answer is unpacked and its records are passed on
	over      int           // number of batches stepped over
}

// errSpoilt is what waiting does not mend: a log that lost its end, or records that cannot be read.
var errSpoilt = errors.New("unreadable")

const (
	// noProgress is how long a reader waits for a span's end, beyond the time for which the broker lets our
	// transactions be open, before it gives up, so that its caller notes the end anew: a log that lost its tail
	// (an unclean leader election) never reaches the old one.
	noProgress = 2 * time.Minute
	// fetchBytes is of one answer. Compressed orders of 4 MiB unpack to 100,000 records, and with eight
	// partitions at a time to 200 MiB. With this much, reading 725,000 rows holds 5 MiB beside what is kept of
	// them (with a mebibyte, 30), in the same time. A larger batch comes whole.
	fetchBytes = 1 << 18
	// fetchWait is short because takeovers share a connection. Where it ends without data a transaction is
	// open, and the reader asks again.
	fetchWait = 100 * time.Millisecond
)

// run gives what it reads to records, in the order of offsets. It gives an empty slice where only r.at moved.
func (r *logReader) run(ctx context.Context, records func([]*kgo.Record) error) error {
	retry, failed := time.Duration(0), false
	progress := time.Now()
	for r.at < r.span.to {
		before := r.at
		part, err := r.fetch(ctx, failed)
		failed = err != nil
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !passing(err):
			return fmt.Errorf("reading topic %s, partition %d at offset %d: %w", r.topic, r.span.partition, r.at, err)
		case err != nil:
			retry = min(max(2*retry, 50*time.Millisecond), 2*time.Second)
			if err := wait.For(ctx, retry); err != nil {
				return err
			}
		default:
			retry = 0
			if done, err := r.give(part, records); err != nil || done {
				return err
			}
		}
		if r.at > before {
			progress = time.Now()
		} else if r.patience > 0 && time.Since(progress) > r.patience {
			return fmt.Errorf("reading topic %s, partition %d: stood at offset %d of %d for %s (a transaction that "+
				"does not end, which %s names, or a log that lost its end): %w", r.topic, r.span.partition, r.at,
				r.span.to, r.patience, r.c.Tool("kafka-transactions.sh", "find-hanging", "--topic", r.topic,
					"--partition", strconv.Itoa(int(r.span.partition))), errors.Join(err, context.DeadlineExceeded))
		}
	}
	return nil
}

// within cuts off what stands at or after the end of the span, and the markers: they have moved the position,
// which is all they are for.
func within(records []*kgo.Record, to int64) []*kgo.Record {
	kept := records[:0]
	for _, record := range records {
		if record.Offset < to && !record.Attrs.IsControl() {
			kept = append(kept, record)
		}
	}
	return kept
}

// fetch requests the records from r.at on. After a failure it looks up the topic's leaders again.
func (r *logReader) fetch(ctx context.Context, failed bool) (*kmsg.FetchResponseTopicPartition, error) {
	topic, err := r.c.meta.describe(ctx, r.topic, failed)
	if err != nil {
		return nil, err
	}
	if topic.isAnother(r.id) {
		return nil, fmt.Errorf("%w: the topic was deleted and created again", errSpoilt)
	}
	r.id = topic.id
	leader, err := topic.leader(r.span.partition)
	if err != nil {
		return nil, err
	}
	answer, err := r.cl.Broker(int(leader)).RetriableRequest(ctx, r.request(topic.id))
	if err != nil {
		return nil, err
	}
	part, err := onlyPartition(answer.(*kmsg.FetchResponse))
	if errors.Is(err, kerr.OffsetOutOfRange) {
		return &kmsg.FetchResponseTopicPartition{}, r.skipToStart(ctx)
	}
	return part, err
}

// give unpacks an answer, passes its records on and moves r.at past it. Markers and aborted records are
// skipped, but r.at moves past them too. done is true if the broker has the whole span, no transaction in it
// is open, and the span has no records at or after r.at.
func (r *logReader) give(part *kmsg.FetchResponseTopicPartition, records func([]*kgo.Record) error) (
	done bool, err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	got, err := r.unpack(part)
	if err == nil {
		err = records(within(got, r.span.to))
	}
	all := len(part.RecordBatches) == 0 && min(part.LastStableOffset, part.HighWatermark) >= r.span.to
	return all, err
}

// unpack returns the records of an answer, up to an unpacker's limit. In place of a batch that it refuses it
// returns one record whose Context is unread.
func (r *logReader) unpack(part *kmsg.FetchResponseTopicPartition) ([]*kgo.Record, error) {
	most := r.c.mostUnpacked(r.topic)
	unpacker := &unpacker{left: most}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Offset: r.at,
		IsolationLevel: kgo.ReadCommitted(), Topic: r.topic, Partition: r.span.partition}, part, unpacker, nil)
	before := r.at
	r.at = next
	refused, tooLarge := errors.AsType[*kgo.ErrDecompressTooLarge](fp.Err)
	switch size := len(part.RecordBatches); {
	case tooLarge && next > before: // this answer had no room left for it
		return fp.Records, nil
	case tooLarge && refused.NextOffset > before:
		r.at = refused.NextOffset
		r.stepOver(refused, unpacker, most)
		return []*kgo.Record{{Topic: r.topic, Partition: r.span.partition, Offset: max(refused.Offset, before),
			Timestamp: time.UnixMilli(0), Context: unread}}, nil
	case fp.Err == nil && size > 0 && next == before:
		fp.Err = fmt.Errorf("an answer of %d bytes without one whole batch", size)
	}
	if fp.Err != nil {
		return nil, fmt.Errorf("reading topic %s, partition %d at offset %d: %w: %w", r.topic, r.span.partition,
			before, errSpoilt, fp.Err)
	}
	return fp.Records, nil
}

// unread is the Context of a record that stands for a batch which was stepped over. The record has no key and
// no value.
var unread = context.WithValue(context.Background(), errUnread, nil)

// errUnread is the error of a record whose Context is unread.
var errUnread = fmt.Errorf("%w: a batch that unpacks to more than storestream writes, so its records are "+
	"not known", errNotOurs)

// stepOver logs the batch that is stepped over. It logs the first, the second, the fourth, and so on, because
// another program may write thousands.
func (r *logReader) stepOver(batch *kgo.ErrDecompressTooLarge, u *unpacker, most int) {
	if r.over++; r.over&(r.over-1) != 0 {
		return
	}
	r.c.log.Warn("stepping over a batch that unpacks to more than storestream writes: another program wrote "+
		"it, and its records are not known; docs/security.md says what to do, \"A batch that was stepped over\"",
		zap.String("topic", batch.Topic), zap.Int32("partition", batch.Partition),
		zap.Int64("offset", batch.Offset), zap.Int64("next_offset", batch.NextOffset),
		zap.String("codec", codecName(u.codec)), zap.Int("bytes", u.packed), zap.Int("limit_bytes", most),
		zap.Int("so_far", r.over), zap.NamedError("reason", u.err))
}

func (r *logReader) request(topicID [16]byte) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = r.span.partition, r.at, fetchBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = r.topic, topicID
	t.Partitions = append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(r.fetchWait.Milliseconds())
	req.MinBytes, req.MaxBytes = 1, fetchBytes
	req.IsolationLevel = 1 // read_committed
	req.SessionEpoch = -1  // no fetch session
	req.Topics = append(req.Topics, t)
	return req
}

func onlyPartition(answer *kmsg.FetchResponse) (*kmsg.FetchResponseTopicPartition, error) {
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return nil, err
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return nil, errors.New("the broker's answer does not hold the one partition that was asked for")
	}
	part := &answer.Topics[0].Partitions[0]
	return part, kerr.ErrorForCode(part.ErrorCode)
}

// skipToStart moves to where the log begins now: records were deleted (kafka-delete-records) while we read. A
// log that ends before our position has lost its end, which is an error: its caller notes the end anew.
func (r *logReader) skipToStart(ctx context.Context) error {
	starts, err := r.c.meta.offsets(ctx, r.topic, r.c.admin.ListStartOffsets)
	if err != nil {
		return err
	}
	if int(r.span.partition) >= len(starts) || starts[r.span.partition] <= r.at {
		return fmt.Errorf("%w: the log no longer reaches this offset", errSpoilt)
	}
	r.at = starts[r.span.partition]
	return nil
}

// passing says whether waiting may mend err. A topic that is unknown may be a broker that has just started,
// but it may have been deleted as well: the caller begins again and looks.
func passing(err error) bool {
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
		return false
	}
	if broker, ok := errors.AsType[*kerr.Error](err); ok {
		return broker.Retriable
	}
	return !errors.Is(err, errSpoilt) && !errors.Is(err, kgo.ErrClientClosed)
}
