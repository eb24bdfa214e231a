package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// neighbourQuiet is how long a watermark of another group keeps us away: three of the 10 s within which a
// living owner writes one.
const neighbourQuiet = 30 * time.Second

// Take makes this instance the only one that can write the topic of r, and reads what its predecessor left.
// The numbers of its steps are those of the package's comment, which argues their order.
//
// The error is a *RefusedError if only a person can put it right. Anything else may pass
// (a broker or registry that is down), except that the registry's own refusals come through as they are
// (registry.Retryable tells).
func Take(ctx context.Context, c *Cluster, r *schemas.Resource) (*Session, error) {
	s := newSession(c, r)
	holdsRows, err := s.look(ctx) // step 2
	if err == nil {
		err = s.fence(ctx) // steps 3 and 4
	}
	if err == nil {
		err = s.readState(ctx, holdsRows) // step 5
	}
	if err != nil {
		if s.cl != nil {
			s.cl.Close()
		}
		return nil, fmt.Errorf("taking over %s: %w", r.Name, err)
	}
	return s, nil
}

func newSession(c *Cluster, r *schemas.Resource) *Session {
	s := &Session{c: c, log: c.log.With(zap.String("resource", r.Name)), id: c.transactionalID(r.Name),
		target: target{resource: r, topic: c.Topic(r.Name)}, looked: c.cfg.Now()}
	if id := r.KeyID(); id != "" {
		s.target.headers = []kgo.RecordHeader{{Key: schemas.HeaderKeyID, Value: []byte(id)}}
	}
	return s
}

// look makes the topics that are missing, finds the schema ids and the topics' limits, and checks that the
// topic is ours to take. It disturbs no other instance. holdsRows reports whether the topic holds a record of
// a row. Rehearse takes the same steps.
func (s *Session) look(ctx context.Context) (holdsRows bool, err error) {
	c, t := s.c, &s.target
	if err := EnsureTopics(ctx, c, t.resource.Name); err != nil {
		return false, err
	}
	if holdsRows, err = s.lookAtKeys(ctx, false); err != nil {
		return false, err
	}
	t.limits = make(map[string]int)
	for topic, log := range map[string]*writtenLog{t.topic: &s.data, c.DeadLetters(): &s.letters,
		c.Watermarks(): &s.marks} {
		if t.limits[topic], err = MaxRecordBytes(ctx, c, topic); err != nil {
			return false, err
		}
		if err = log.find(ctx, c, topic); err != nil {
			return false, err
		}
	}
	_, err = s.lookAtMark(ctx)
	return holdsRows, err
}

// lookAtKeys finds the schema ids, and checks that the oldest key of each partition has that of keys. Rebuild
// checks the rest. It registers no schema before it knows that the schemas of the topic are still there, and
// none at all if dry is set.
func (s *Session) lookAtKeys(ctx context.Context, dry bool) (holdsRows bool, err error) {
	c, t := s.c, &s.target
	oldest, err := oldestKeys(ctx, c, t.topic)
	if err != nil {
		return false, err
	}
	if err := sameSchemas(ctx, c, t.resource, oldest); err != nil {
		return false, err
	}
	t.keyID, t.valueID, err = c.cfg.Registry.Ensure(ctx, t.topic, t.resource, c.cfg.AutoRegister, dry)
	if err != nil {
		return false, err
	}
	for _, record := range oldest {
		if _, err := t.id(record); err != nil {
			return false, err
		}
	}
	return len(oldest) > 0, nil
}

// lookAtMark reads the last watermark, and returns an error if another deployment has written it lately. It
// does not wait for open transactions: a living neighbour has written within the last seconds anyway.
func (s *Session) lookAtMark(ctx context.Context) (*watermark.Watermark, error) {
	mark, err := lastWatermark(ctx, s.c, s.target.resource.Name, s.c.admin.ListCommittedOffsets)
	if err != nil {
		return nil, err
	}
	return mark, s.refuseNeighbour(mark)
}

// MaxRecordBytes is how many bytes a batch of the topic may take.
func MaxRecordBytes(ctx context.Context, c *Cluster, topic string) (int, error) {
	settings, err := c.settings(ctx, topic)
	if err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(settings["max.message.bytes"])
	if err != nil {
		limit = 1000012 // the broker's default, which the client assumes
	}
	return min(max(limit, 1024), mostUnpacked), nil
}

// refuseNeighbour returns an error if another deployment is at work on the same topic. Both have the same
// transactional id, so they would fence each other in turns.
func (s *Session) refuseNeighbour(mark *watermark.Watermark) error {
	if mark == nil || mark.Group == s.c.cfg.Group {
		return nil
	}
	if age := schemas.InstantOf(s.c.cfg.Now()).Sub(mark.Written); age > neighbourQuiet || age < -neighbourQuiet {
		return nil
	}
	return &RefusedError{Topic: s.target.topic, Setting: "its publisher", Found: fmt.Sprintf("group %q "+
		"(instance %q, last at %s)", mark.Group, mark.Instance, mark.Written),
		Expected: fmt.Sprintf("group %q, or none for %s", s.c.cfg.Group, neighbourQuiet),
		Do:       "stop one of the two deployments, or give this one another kafka.topic_prefix"}
}

// fence ends the predecessor, and all transactions that hang in our partitions. Ending one of our own
// transactional id fences that id once more, so its producer id is asked for again.
func (s *Session) fence(ctx context.Context) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	ended, err := endHanging(ctx, s.c, s.log, s.data.name, s.marks.name, s.letters.name)
	if errors.Is(err, errCannotAsk) {
		s.log.Info("cannot tell whether transactions hang, and waits for those that are open", zap.Error(err))
		return nil
	}
	if err != nil || !ended {
		return err
	}
	s.cl.Close()
	return s.claim(ctx)
}

// claim makes the client that writes and asks for the producer id, which ends the predecessor. Creating a
// client alone fences no producer: it would ask with its first record.
func (s *Session) claim(ctx context.Context) (err error) {
	if s.cl, err = s.writer(); err != nil {
		return err
	}
	_, _, err = s.cl.ProducerID(ctx)
	if errors.Is(err, kerr.InvalidTransactionTimeout) {
		return &RefusedError{Topic: s.target.topic, Setting: "the timeout of its transactions",
			Found:    transactionTimeout.String(),
			Expected: "no more than transaction.max.timeout.ms of the brokers' settings, which refuse it",
			Do:       "raise transaction.max.timeout.ms on every broker"}
	}
	if err != nil {
		return fmt.Errorf("asking for the producer id of %s: %w", s.id, err)
	}
	return nil
}

// codecs are the values of Config.Compression. lz4 took a fifth of a first load's CPU, snappy a tenth, and
// each of lz4's writers holds 8 MB.
var codecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

// writer makes the client that writes one resource. Everything about it is limited in time: a transaction
// that cannot be finished is better known as failed.
func (s *Session) writer() (*kgo.Client, error) {
	return s.c.client(
		kgo.TransactionalID(s.id),
		kgo.TransactionTimeout(transactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[s.c.cfg.Compression], kgo.NoCompression()),
		// The client also asks for topics that we never write.
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			return int32(cmp.Or(s.target.limits[topic], 1<<20))
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

// readState reads the predecessor's committed state. Only after fencing is the end of the watermark topic
// worth noting.
func (s *Session) readState(ctx context.Context, holdsRows bool) error {
	found, err := lastWatermark(ctx, s.c, s.target.resource.Name, s.c.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	if err := s.refuseNeighbour(found); err != nil {
		return err
	}
	if _, err := s.resume(ctx, found, holdsRows); err != nil {
		return err
	}
	if s.letters.ends, err = s.c.offsets(ctx, s.letters.name, s.c.admin.ListEndOffsets); err != nil {
		return err
	}
	s.deadLetters, err = ReadDeadLetters(ctx, s.c, s.target.resource.Name)
	return err
}

// resume decides where to go on in the topic that is there now, when found is the last watermark (nil:
// none). afresh is the reason why the topic is filled from the start although there is a watermark.
func (s *Session) resume(ctx context.Context, found *watermark.Watermark, holdsRows bool) (
	afresh string, err error) {
	r, id := s.target.resource, s.data.id
	var noted []int64
	if found != nil && !differ(id, found.TopicID) {
		noted = found.Ends
	}
	s.data.ends, err = s.c.endsAgain(ctx, s.data.name, s.c.admin.ListEndOffsets, noted)
	if err != nil {
		return "", err
	}
	if found == nil {
		s.mark = watermark.New(r.Name)
		if holdsRows && r.PolicyFingerprint() != "" { // without one there is nothing to hide
			s.mark.Policies = heldPolicies(watermark.LostPolicies(), r)
		}
		return "", nil
	}
	if why := otherLog(found, id, s.data.ends); why != "" {
		s.log.Warn("the data topic was created anew, or lost records, since the last watermark: publishing "+
			"everything from the start", zap.String("why", why), zap.String("topic", s.data.name),
			zap.String("topic_id", id), zap.String("watermark_topic_id", found.TopicID))
		s.mark = anew(found, id, r)
		return why, nil
	}
	if s.mark = *found; int(found.Partitions) != s.data.partitions {
		return "", OtherPartitions(s.c, *found, s.data.partitions)
	}
	return "", nil
}
