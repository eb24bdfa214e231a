package producer

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Take makes this instance the only one that can write the topic of r, and reads what its predecessor left. The order of its steps is argued in
// the package's comment. The caller has asked the group just before whether it is still a member (Group.Confirm).
//
// The error is a *RefusedError or *NeighbourError where only a person can mend it; anything else may pass (a broker or registry that is down), except
// that the registry's own refusals come through as they are (registry.Retryable tells).
func Take(ctx context.Context, c *Cluster, r *schemas.Resource) (*Session, error) {
	s, err := c.prepare(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("taking over %s: %w", r.Name, err)
	}
	if err := s.claim(ctx); err != nil {
		s.Lost()
		return nil, fmt.Errorf("taking over %s: %w", r.Name, err)
	}
	return s, nil
}

// prepare does what can be done without disturbing a predecessor, so that what cannot be polled does not fence anybody.
func (c *Cluster) prepare(ctx context.Context, r *schemas.Resource) (*Session, error) {
	if err := EnsureTopics(ctx, c, r.Name); err != nil {
		return nil, err
	}
	s := &Session{c: c, resource: r, log: c.log.With(zap.String("resource", r.Name)), pace: c.paceOf(r.Name)}
	var err error
	if s.keyID, s.valueID, err = c.cfg.Registry.Ensure(ctx, c.Topic(r.Name), r, c.cfg.AutoRegister); err != nil {
		return nil, err
	}
	if s.limits, err = c.batchLimits(ctx, r.Name); err != nil {
		return nil, err
	}
	if s.topic, err = c.describe(ctx, c.Topic(r.Name), true); err != nil {
		return nil, err
	}
	if err := s.checkKeys(ctx); err != nil {
		return nil, err
	}
	// Without waiting for open transactions: a living neighbour has written within the last seconds anyway.
	spans, err := c.settled(ctx, c.Watermarks())
	if err != nil {
		return nil, err
	}
	mark, err := c.lastWatermark(ctx, r.Name, spans)
	if err != nil {
		return nil, err
	}
	return s, s.alone(mark)
}

// claim fences the predecessor and reads what it left.
func (s *Session) claim(ctx context.Context) error {
	var err error
	if s.cl, err = s.c.newTransactional(s.resource.Name, s.limits); err != nil {
		return err
	}
	if err := s.fence(ctx); err != nil { // step 1
		return err
	}
	open, err := s.hanging(ctx)
	if err == nil && len(open) > 0 {
		err = s.endHanging(ctx, open)
	}
	if err != nil {
		return err
	}
	// Step 2: only now is the end of the watermark topic worth noting. The resource's watermark is looked for in all partitions: somebody may have
	// added some, and then its key hashes to another than it did.
	spans, err := s.c.whole(ctx, s.c.Watermarks())
	if err != nil {
		return err
	}
	mark, err := s.c.lastWatermark(ctx, s.resource.Name, spans)
	if err != nil {
		return err
	}
	if err := s.alone(mark); err != nil {
		return err
	}
	if s.mark, err = s.judge(mark); err != nil {
		return err
	}
	s.letters, err = s.c.lettersOf(ctx, s.resource.Name)
	return err
}

// fence asks for the producer id, which ends the predecessor. The client would ask with the first record, but creating it fences nobody.
func (s *Session) fence(ctx context.Context) error {
	if _, _, err := s.cl.ProducerID(ctx); err != nil {
		return fmt.Errorf("asking for the producer id of %s: %w", s.c.transactionalID(s.resource.Name), err)
	}
	return nil
}

// alone refuses to go on where another deployment is at work on the same topic: with the transactional id in common, the two would fence each other
// in turns.
func (s *Session) alone(mark *watermark.Watermark) error {
	if mark == nil || mark.Group == s.c.cfg.Group {
		return nil
	}
	if age := schemas.InstantOf(s.c.cfg.Now()).Sub(mark.Written); age > neighbourQuiet || age < -neighbourQuiet {
		return nil
	}
	return &NeighbourError{Resource: s.resource.Name, Topic: s.topic.name, Group: mark.Group, Instance: mark.Instance, Written: mark.Written}
}

// judge says what the watermark that was found means for the topic that is there now.
func (s *Session) judge(found *watermark.Watermark) (watermark.Watermark, error) {
	if found == nil {
		return watermark.New(s.resource.Name), nil
	}
	if found.TopicID != s.topic.text() {
		// Another topic than the one the watermark speaks of: what was published is not in it. The requests done stay done.
		s.log.Warn("the data topic was created anew since the last watermark: publishing everything from the start",
			zap.String("topic", s.topic.name), zap.String("topic_id", s.topic.text()), zap.String("watermark_topic_id", found.TopicID))
		fresh := watermark.New(s.resource.Name)
		fresh.Request = found.Request
		return fresh, nil
	}
	if int(found.Partitions) != len(s.topic.leaders) {
		return watermark.Watermark{}, &RefusedError{Topic: s.topic.name, Setting: "the number of partitions", Found: strconv.Itoa(len(s.topic.leaders)),
			Expected: strconv.Itoa(int(found.Partitions)) + " (with another count a key hashes to another partition, and its old record stays beside the new one)",
			Do:       "delete the topic: it is created anew and filled from the start"}
	}
	return *found, nil
}

// lastWatermark reads the spans of the watermark topic for the newest watermark of resource, nil if there is none.
func (c *Cluster) lastWatermark(ctx context.Context, resource string, spans []span) (*watermark.Watermark, error) {
	all, err := c.watermarksIn(ctx, spans, func(name string) bool { return name == resource })
	if err != nil {
		return nil, err
	}
	if mark, ok := all[resource]; ok {
		return &mark, nil
	}
	return nil, nil
}

// ReadWatermarks is the newest watermark of each resource that every consumer can see. It waits for no transaction: one that was committed this moment, or stands behind
// somebody's open one, may be missing.
func ReadWatermarks(ctx context.Context, c *Cluster) (map[string]watermark.Watermark, error) {
	spans, err := c.settled(ctx, c.Watermarks())
	if err != nil {
		return nil, err
	}
	return c.watermarksIn(ctx, spans, func(string) bool { return true })
}

func (c *Cluster) watermarksIn(ctx context.Context, spans []span, wanted func(resource string) bool) (map[string]watermark.Watermark, error) {
	newest := make(map[string]*kgo.Record)
	err := c.readLog(ctx, c.Watermarks(), spans, func(record *kgo.Record) error {
		name := string(record.Key)
		if last := newest[name]; wanted(name) && (last == nil || later(record, last)) {
			newest[name] = record
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	marks := make(map[string]watermark.Watermark)
	var wrong []error
	for name, record := range newest {
		if record.Value == nil {
			continue // taken out by hand
		}
		mark, err := watermark.Decode(name, record.Value)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("topic %s, partition %d, offset %d: %w", record.Topic, record.Partition, record.Offset, err))
			continue
		}
		marks[name] = mark
	}
	return marks, errors.Join(wrong...)
}

// later orders two records of one key: by offset within a partition, and between two (see claim) by record time, which is the watermark's Written and grows from
// one watermark of a resource to the next.
func later(a, b *kgo.Record) bool {
	if a.Partition == b.Partition {
		return a.Offset > b.Offset
	}
	return a.Timestamp.After(b.Timestamp)
}
