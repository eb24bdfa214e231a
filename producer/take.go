package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// NeighbourError holds a resource because another group publishes it to the same topic. Nothing was fenced.
type NeighbourError struct {
	Resource, Topic, Group, Instance string
	Written                          schemas.Instant
}

func (e *NeighbourError) Error() string {
	return fmt.Sprintf("%s is being published to topic %s by group %q (instance %q, last at %s): "+
		"stop one of the two deployments, or give this one another kafka.topic_prefix; "+
		"it takes over once the other has been quiet for %s",
		e.Resource, e.Topic, e.Group, e.Instance, e.Written, neighbourQuiet)
}

// neighbourQuiet is how long a watermark of another group keeps us away: three of the 10 s within which a
// living owner writes one.
const neighbourQuiet = 30 * time.Second

// takeover is what the steps of Take hand on from one to the next.
type takeover struct {
	c      *Cluster
	log    *zap.Logger
	id     string // the transactional id
	target target
	// holdsRows: the data topic holds a record of a row.
	holdsRows bool
}

// Take makes this instance the only one that can write the topic of r, and reads what its predecessor left.
// The numbers of its steps are those of the package's comment, which argues their order.
//
// The error is a *RefusedError or *NeighbourError where only a person can put it right. Anything else may
// pass (a broker or registry that is down), except that the registry's own refusals come through as they are
// (registry.Retryable tells).
func Take(ctx context.Context, c *Cluster, r *schemas.Resource) (*Session, error) {
	s, err := take(ctx, c, r)
	if err != nil {
		return nil, fmt.Errorf("taking over %s: %w", r.Name, err)
	}
	return s, nil
}

func take(ctx context.Context, c *Cluster, r *schemas.Resource) (*Session, error) {
	target, oldest, err := findTarget(ctx, c, r)
	if err != nil {
		return nil, err
	}
	t := takeover{c, c.log.With(zap.String("resource", r.Name)), c.transactionalID(r.Name), target,
		len(oldest) > 0}
	if err := t.look(ctx, oldest); err != nil { // step 2
		return nil, err
	}
	cl, err := t.fence(ctx) // steps 3 and 4
	if err != nil {
		return nil, err
	}
	sizer, _ := c.sizers.LoadOrStore(r.Name, new(batchSizer))
	s := &Session{c: c, log: t.log, target: target, cl: cl, sizer: sizer.(*batchSizer), looked: c.cfg.Now()}
	if err := t.readState(ctx, s); err != nil { // step 5
		cl.Close()
		return nil, err
	}
	return s, nil
}

// findTarget makes the topics, and finds the schema ids, what the topics take, and the oldest record of each
// partition. It registers no schema before it is known that those of the topic are still there.
func findTarget(ctx context.Context, c *Cluster, r *schemas.Resource) (
	t target, oldest []*kgo.Record, err error) {
	if err := EnsureTopics(ctx, c, r.Name); err != nil {
		return t, nil, err
	}
	if oldest, err = oldestKeys(ctx, c, c.Topic(r.Name)); err != nil {
		return t, nil, err
	}
	if err := sameSchemas(ctx, c, r, oldest); err != nil {
		return t, nil, err
	}
	t = target{resource: r, deadLetters: c.DeadLetters(), limits: make(map[string]int)}
	topic := c.Topic(r.Name)
	if t.keyID, t.valueID, err = c.cfg.Registry.Ensure(ctx, topic, r, c.cfg.AutoRegister); err != nil {
		return t, nil, err
	}
	marks, err := c.meta.describe(ctx, c.Watermarks(), true)
	if err != nil {
		return t, nil, err
	}
	t.watermarks = len(marks.leaders)
	for _, topic := range []string{topic, c.DeadLetters(), c.Watermarks()} {
		if t.limits[topic], err = batchLimit(ctx, c, topic); err != nil {
			return t, nil, err
		}
	}
	t.topic, err = c.meta.describe(ctx, topic, true)
	return t, oldest, err
}

// batchLimit is how many bytes a batch of the topic may take.
func batchLimit(ctx context.Context, c *Cluster, topic string) (int, error) {
	settings, err := c.meta.settings(ctx, topic)
	if err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(settings["max.message.bytes"])
	if err != nil {
		limit = 1000012 // what the client assumes: the broker's default
	}
	return min(max(limit, 1024), c.mostUnpacked(topic)), nil
}

// look finds out, without disturbing anybody, whether the topic is ours to take. It looks at the oldest key
// of each partition; Rebuild looks at the rest as it comes by.
func (t *takeover) look(ctx context.Context, oldest []*kgo.Record) error {
	for _, record := range oldest {
		if _, err := t.target.id(record); err != nil {
			return err
		}
	}
	// Without waiting for open transactions: a living neighbour has written within the last seconds anyway.
	spans, err := t.c.meta.toStableOffset(ctx, t.c.Watermarks())
	if err != nil {
		return err
	}
	mark, err := lastWatermark(ctx, t.c, t.target.resource.Name, spans)
	if err != nil {
		return err
	}
	return t.refuseNeighbour(mark)
}

// refuseNeighbour refuses to go on where another deployment is at work on the same topic: with the
// transactional id in common, the two would fence each other in turns.
func (t *takeover) refuseNeighbour(mark *watermark.Watermark) error {
	if mark == nil || mark.Group == t.c.cfg.Group {
		return nil
	}
	if age := schemas.InstantOf(t.c.cfg.Now()).Sub(mark.Written); age > neighbourQuiet || age < -neighbourQuiet {
		return nil
	}
	return &NeighbourError{Resource: t.target.resource.Name, Topic: t.target.topic.name, Group: mark.Group,
		Instance: mark.Instance, Written: mark.Written}
}

// fence ends the predecessor, and all transactions that hang in our partitions. It returns the client that
// writes from now on.
//
// Right after the producer id was given, it has no live transaction. So any open transaction of this producer
// id hangs, and this takeover can end it without further rights.
func (t *takeover) fence(ctx context.Context) (*kgo.Client, error) {
	cl, producerID, err := t.claim(ctx)
	if err != nil {
		return nil, err
	}
	open, err := t.c.openIn(ctx, t.target.topic.name, t.c.Watermarks(), t.c.DeadLetters())
	if errors.Is(err, errCannotAsk) {
		t.log.Info("cannot tell whether transactions hang, and waits for those that are open", zap.Error(err))
		return cl, nil
	}
	own := make(kadm.TopicsSet)
	for o := range open {
		if o.producerID == producerID {
			own.Add(o.topic, o.partition)
			delete(open, o)
		}
	}
	if err == nil {
		err = t.endHanging(ctx, open)
	}
	if err == nil && len(own) == 0 {
		return cl, nil
	}
	cl.Close()
	if err != nil {
		return nil, err
	}
	if err := t.abortIn(ctx, own); err != nil {
		return nil, fmt.Errorf("ending a hanging transaction of %s: %w", t.id, err)
	}
	for _, topic := range own.Sorted() {
		t.log.Warn(endedHanging, zap.String("topic", topic.Topic), zap.Int32s("partitions", topic.Partitions),
			zap.Int64("producer_id", producerID))
	}
	cl, _, err = t.claim(ctx)
	return cl, err
}

// claim makes a client and asks for the producer id, which ends the predecessor. The client would ask with
// its first record, but creating it fences nobody.
func (t *takeover) claim(ctx context.Context) (cl *kgo.Client, producerID int64, err error) {
	if cl, err = t.writer(); err != nil {
		return nil, 0, err
	}
	producerID, _, err = cl.ProducerID(ctx)
	if errors.Is(err, kerr.InvalidTransactionTimeout) {
		cl.Close()
		return nil, 0, &RefusedError{Topic: t.target.topic.name, Setting: "the timeout of its transactions",
			Found:    t.c.cfg.TransactionTimeout.String(),
			Expected: "no more than transaction.max.timeout.ms of the brokers' settings, which refuse it",
			Do: "lower kafka.transaction_timeout and restart, or raise transaction.max.timeout.ms on every " +
				"broker"}
	}
	if err != nil {
		cl.Close()
		return nil, 0, fmt.Errorf("asking for the producer id of %s: %w", t.id, err)
	}
	return cl, producerID, nil
}

// codecs are those of Config.Compression. Of a first load's CPU lz4 took a fifth, snappy a tenth; and each of
// lz4's writers holds 8 MB.
var codecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

// writer makes the client that writes one resource. Everything about it is bounded in time: a transaction
// that cannot be finished is better known as failed than hoped for.
func (t *takeover) writer() (*kgo.Client, error) {
	return t.c.client(
		kgo.TransactionalID(t.id),
		kgo.TransactionTimeout(t.c.cfg.TransactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(partitioner()),
		kgo.ProducerBatchCompression(codecs[t.c.cfg.Compression], kgo.NoCompression()),
		// The client also asks for topics that we never write.
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			return int32(cmp.Or(t.target.limits[topic], 1<<20))
		}),
		// A transaction is flushed whole, so lingering delays nothing; full batches go out at once.
		kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(1<<20),
		kgo.MaxBufferedBytes(128<<20),
		// Not RecordDeliveryTimeout: the client counts it from the record's own time, which is a row's
		// updated_at, so that every row of history would have timed out before it was sent. Commit bounds its
		// writing by a context.
		kgo.ProduceRequestTimeout(10*time.Second),
		kgo.UnknownTopicRetries(2),
	)
}

// abortIn begins a transaction, adds the partitions, writes nothing and aborts it. The markers end whatever
// of its producer id is open in a partition, so they take the old records with them. (Had nobody aborted
// those, the next commit of this session would have ended their transaction, and published what no
// predecessor has committed.)
//
// The requests are of the versions from before brokers added partitions by themselves: with newer ones a
// transaction without a record would have no partitions.
func (t *takeover) abortIn(ctx context.Context, partitions kadm.TopicsSet) error {
	cl, err := t.c.client(kgo.TransactionalID(t.id), kgo.TransactionTimeout(t.c.cfg.TransactionTimeout),
		kgo.MaxVersions(kversion.V3_5_0()))
	if err != nil {
		return err
	}
	defer cl.Close()
	producerID, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = t.id, producerID, epoch
	for _, p := range partitions.Sorted() {
		topic := kmsg.NewAddPartitionsToTxnRequestTopic()
		topic.Topic, topic.Partitions = p.Topic, p.Partitions
		add.Topics = append(add.Topics, topic)
	}
	added, err := add.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, topic := range added.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("adding partition %d of %s: %w", p.Partition, topic.Topic, err)
			}
		}
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch = t.id, producerID, epoch
	ended, err := end.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(ended.ErrorCode)
}

// readState reads into s what the predecessor committed. Only now, after fencing, is the end of the watermark
// topic worth noting. It looks in all partitions: where somebody has added some, the resource's key hashes to
// another than it did.
func (t *takeover) readState(ctx context.Context, s *Session) error {
	spans, err := t.c.meta.toHighWatermark(ctx, t.c.Watermarks())
	if err != nil {
		return err
	}
	found, err := lastWatermark(ctx, t.c, t.target.resource.Name, spans)
	if err != nil {
		return err
	}
	if err := t.refuseNeighbour(found); err != nil {
		return err
	}
	if s.mark, s.ends, err = t.resumePoint(ctx, found); err != nil {
		return err
	}
	if s.letters, err = t.c.meta.describe(ctx, t.c.DeadLetters(), true); err != nil {
		return err
	}
	s.letterEnds, err = t.c.meta.offsets(ctx, s.letters.name, t.c.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	s.deadLetters, err = ReadDeadLetters(ctx, t.c, t.target.resource.Name)
	return err
}

// resumePoint says where to go on in the topic that is there now, when found is the last watermark, and where
// the topic's log ends.
func (t *takeover) resumePoint(ctx context.Context, found *watermark.Watermark) (
	mark watermark.Watermark, ends []int64, err error) {
	topic := t.target.topic
	if found == nil {
		mark = watermark.New(t.target.resource.Name)
		if t.holdsRows && t.target.resource.PolicyFingerprint() != "" { // without one there is nothing to hide
			mark.Policies = heldPolicies(watermark.LostPolicies(), &t.target)
		}
		ends, err = t.c.meta.offsets(ctx, topic.name, t.c.admin.ListEndOffsets)
		return mark, ends, err
	}
	ends, why, err := t.compare(ctx, found)
	if err != nil {
		return mark, nil, err
	}
	if why != "" {
		t.log.Warn("the data topic was created anew, or lost records, since the last watermark: publishing "+
			"everything from the start", zap.String("why", why), zap.String("topic", topic.name),
			zap.String("topic_id", topic.idText()), zap.String("watermark_topic_id", found.TopicID))
		return afresh(found, &t.target), ends, nil
	}
	if int(found.Partitions) != len(topic.leaders) {
		return mark, nil, OtherPartitions(ctx, t.c, *found, len(topic.leaders))
	}
	return *found, ends, nil
}

// compare is otherLog for ends that endsAgain has listed.
func (t *takeover) compare(ctx context.Context, found *watermark.Watermark) (ends []int64, why string,
	err error) {
	topic := t.target.topic
	ends, err = t.c.meta.endsAgain(ctx, topic.name, t.c.admin.ListEndOffsets, func(ends []int64) bool {
		return !topic.otherID(found.TopicID) && otherLog(found, topic, ends) != ""
	})
	if err != nil {
		return nil, "", err
	}
	return ends, otherLog(found, topic, ends), nil
}
