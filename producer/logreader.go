package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
)

// logReader reads one span for fold.
//
// It is done when its position has reached the end of its span. The simpler rule, "until the record at end-1
// has come", would wait without end in two cases:
//   - The last offset of a partition is hardly ever a record. It is the marker that ended a transaction, and
//     after compaction it may be a gap. So the position counts, which moves over markers and aborted records
//     too. If it cannot move, the reader ends when the broker answers "no records here" while the partition's
//     stable offset is at or past the end of the span.
//   - An open transaction hides everything after it until it ends. The stable offset stands still then, so an
//     empty answer alone does not mean the end. The reader waits; the broker ends a transaction after its
//     timeout.
//
// It asks for one partition in a request. In an answer for several, an empty partition may only mean that the
// others filled it.
type logReader struct {
	c      *Cluster
	topic  string
	id     [16]byte // of the topic; zero until it is known
	leader int32    // of the partition, once id was asked for
	asked  bool     // for id and leader
	span   span
	at     int64 // the offset that it asks for next

	skipped bool // a batch was stepped over
}

// errSpoilt means that waiting does not help: the log lost its end, or its records cannot be read.
var errSpoilt = errors.New("unreadable")

const (
	// noProgress is how long a reader waits without progress, beyond the time for which the broker lets our
	// transactions be open. A log that lost its tail (an unclean leader election) never reaches the end that
	// was noted. So the reader gives up, and its caller notes the end again.
	noProgress = 2 * time.Minute
	// fetchBytes limits one answer. Compressed orders of 4 MiB unpack to 100,000 records, which take 25 MiB. A
	// larger batch comes whole.
	fetchBytes = 1 << 18
	// fetchWait is how long the broker may wait for data. It is short because takeovers share a connection.
	// If it ends without data, a transaction is open, and the reader asks again.
	fetchWait = 100 * time.Millisecond
)

// next returns the next records of the span, or none. It moves r.at, to the end of the span if there are no
// more.
func (r *logReader) next(ctx context.Context) ([]*kgo.Record, error) {
	patience, began, before := transactionTimeout+noProgress, time.Now(), r.at
	for pause := 50 * time.Millisecond; ; {
		part, err := r.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && !passing(err):
			return nil, fmt.Errorf("reading topic %s, partition %d at offset %d: %w", r.topic, r.span.partition,
				r.at, err)
		case err != nil:
			r.asked = false
			if err := wait.For(ctx, pause); err != nil {
				return nil, err
			}
			pause = min(2*pause, 2*time.Second)
		case len(part.RecordBatches) > 0:
			return r.unpack(part)
		case min(part.LastStableOffset, part.HighWatermark) >= r.span.to:
			r.at = r.span.to // the broker has the whole span, no transaction in it is open, and no record is left
		}
		if r.at > before {
			return nil, nil
		}
		if time.Since(began) > patience {
			return nil, fmt.Errorf("reading topic %s, partition %d: stood at offset %d of %d for %s (perhaps a "+
				"transaction does not end, or the log lost its end): %w", r.topic, r.span.partition, r.at, r.span.to,
				patience, errors.Join(err, context.DeadlineExceeded))
		}
	}
}

// fetch requests the records from r.at on, of the partition's leader.
func (r *logReader) fetch(ctx context.Context) (*kmsg.FetchResponseTopicPartition, error) {
	if !r.asked {
		if err := r.findLeader(ctx); err != nil {
			return nil, err
		}
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = r.span.partition, r.at, fetchBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = r.topic, r.id
	t.Partitions = append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(fetchWait.Milliseconds())
	req.MinBytes, req.MaxBytes = 1, fetchBytes
	req.IsolationLevel = 1 // read_committed
	req.SessionEpoch = -1  // no fetch session
	req.Topics = append(req.Topics, t)
	response, err := r.c.cl.Broker(int(r.leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	answer := response.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return nil, err
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return nil, errors.New("the broker's answer does not hold the one partition that was asked for")
	}
	part := &answer.Topics[0].Partitions[0]
	return part, kerr.ErrorForCode(part.ErrorCode)
}

// findLeader finds the topic's id and the partition's leader.
func (r *logReader) findLeader(ctx context.Context) error {
	topic, err := r.c.describe(ctx, r.topic)
	if err != nil {
		return err
	}
	if r.id != [16]byte{} && topic.TopicID != [16]byte{} && r.id != topic.TopicID {
		return fmt.Errorf("%w: the topic was deleted and created again", errSpoilt)
	}
	for _, p := range topic.Partitions {
		if p.Partition == r.span.partition && p.Leader >= 0 {
			r.id, r.leader, r.asked = topic.TopicID, p.Leader, true
			return nil
		}
	}
	if int(r.span.partition) < len(topic.Partitions) {
		return kerr.LeaderNotAvailable
	}
	return fmt.Errorf("it has fewer partitions now: %w", kerr.UnknownTopicOrPartition)
}

// unpack returns the records of an answer, up to an unpacker's limit, and moves r.at past them.
// Markers, aborted records and records after the span are left out, but r.at moves past them too. In place of
// a batch that the unpacker refuses there is one record whose Context is unread.
func (r *logReader) unpack(part *kmsg.FetchResponseTopicPartition) ([]*kgo.Record, error) {
	unpacker := &unpacker{Decompressor: r.c.decompressor, left: mostUnpacked}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: r.at,
		IsolationLevel: kgo.ReadCommitted(), Topic: r.topic, Partition: r.span.partition}, part, unpacker, nil)
	before := r.at
	r.at = next
	refused, tooLarge := errors.AsType[*kgo.ErrDecompressTooLarge](fp.Err)
	switch {
	case tooLarge && next > before: // this answer had no room left for it
		fp.Err = nil
	case tooLarge && refused.NextOffset > before:
		r.at = refused.NextOffset
		if !r.skipped { // one line for all: another program may write thousands
			r.skipped = true
			r.c.log.Warn("stepping over a batch that unpacks to more than storestream writes: another program "+
				"wrote it, and its records are not known; docs/security.md says what to do, \"A batch that was "+
				"stepped over\"", zap.String("topic", r.topic), zap.Int32("partition", r.span.partition),
				zap.Int64("offset", refused.Offset), zap.Int64("next_offset", refused.NextOffset),
				zap.Int("limit_bytes", mostUnpacked), zap.NamedError("reason", unpacker.err))
		}
		fp.Err, fp.Records = nil, []*kgo.Record{{Topic: r.topic, Partition: r.span.partition,
			Offset: max(refused.Offset, before), Timestamp: time.UnixMilli(0), Context: unread}}
	case fp.Err == nil && next == before:
		fp.Err = fmt.Errorf("an answer of %d bytes without one whole batch", len(part.RecordBatches))
	}
	if fp.Err != nil {
		return nil, fmt.Errorf("reading topic %s, partition %d at offset %d: %w: %w", r.topic, r.span.partition,
			before, errSpoilt, fp.Err)
	}
	behind := func(record *kgo.Record) bool { return record.Offset >= r.span.to }
	return slices.DeleteFunc(fp.Records, behind), nil
}

// unread is the Context of a record that stands for a batch which was stepped over. The record has no key and
// no value.
var unread = context.WithValue(context.Background(), errUnread, nil)

// errUnread is the error of a record whose Context is unread.
var errUnread = fmt.Errorf("%w: a batch that unpacks to more than storestream writes, so its records are "+
	"not known", errNotOurs)

// passing reports whether waiting may resolve err. A topic that is unknown may be a broker that has just
// started, but it may have been deleted as well: the caller begins again and looks.
func passing(err error) bool {
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
		return false
	}
	if broker, ok := errors.AsType[*kerr.Error](err); ok {
		return broker.Retriable
	}
	return !errors.Is(err, errSpoilt) && !errors.Is(err, kgo.ErrClientClosed)
}
