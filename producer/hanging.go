package producer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"
)

// hanging finds the partitions in which a transaction of a predecessor is open although the coordinator says that it has ended: a hanging transaction. Nothing
// behind it is shown to any read_committed consumer, for ever: neither the broker's timeout nor fencing ends what the coordinator does not know of.
//
// It was met on Apache Kafka 4.3.1, whose brokers are meant to refuse it (KIP-890). The sequence: a broker stands still for eight seconds with a produce
// request in hand; its owner's session in the group ends meanwhile; awake, the broker writes the record, and the coordinator, which has not been told that the
// partition is part of the transaction, answers the successor's request for a producer id with nothing to abort. All five resources then waited
// for one record in the watermark topic, through every takeover, for three quarters of an hour.
//
// It is asked right after the producer id was given, when nothing of this id can be open. A broker before 2.8, or one that does not let us ask, is believed to have none.
func (s *Session) hanging(ctx context.Context) (open kadm.TopicsSet, err error) {
	id, _, err := s.cl.ProducerID(ctx)
	if err != nil {
		return nil, err
	}
	ours := make(kadm.TopicsSet)
	for _, topic := range []string{s.topic.name, s.c.Watermarks(), s.c.DeadLetters()} {
		info, err := s.c.describe(ctx, topic, false)
		if err != nil {
			return nil, err
		}
		for p := range info.leaders {
			ours.Add(topic, int32(p))
		}
	}
	described, err := s.c.admin.DescribeProducers(ctx, ours)
	if len(described) == 0 && err != nil {
		s.log.Debug("whether transactions hang cannot be asked: older brokers do not know the question", zap.Error(err))
		return nil, nil
	}
	open = make(kadm.TopicsSet)
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.ProducerID == id && p.CurrentTxnStartOffset >= 0 {
			open.Add(p.Topic, p.Partition)
		}
	})
	return open, nil
}

// endHanging aborts what hanging found, and makes the session's client anew. A marker ends whatever of its producer id is open in a partition, so a transaction
// of ours that adds those partitions, writes nothing and is aborted takes the old records with it. (Had nobody aborted it, the next commit of this
// session would have ended it, and published what no predecessor has committed.)
func (s *Session) endHanging(ctx context.Context, open kadm.TopicsSet) error {
	for _, t := range open.Sorted() {
		s.log.Warn("ending a transaction that the broker left open in the log although its coordinator has forgotten it",
			zap.String("topic", t.Topic), zap.Int32s("partitions", t.Partitions))
	}
	if err := s.c.abortIn(ctx, s.resource.Name, open); err != nil {
		return fmt.Errorf("ending a hanging transaction of %s: %w", s.c.transactionalID(s.resource.Name), err)
	}
	s.cl.Close()
	var err error
	if s.cl, err = s.c.newTransactional(s.resource.Name, s.limits); err != nil {
		return err
	}
	return s.fence(ctx)
}

// abortIn begins a transaction, adds the partitions, and aborts it. The requests are of the versions from before brokers added partitions by themselves: with those, a
// transaction without a record would have none.
func (c *Cluster) abortIn(ctx context.Context, resource string, partitions kadm.TopicsSet) error {
	cl, err := c.client(kgo.TransactionalID(c.transactionalID(resource)), kgo.TransactionTimeout(c.cfg.TransactionTimeout), kgo.MaxVersions(kversion.V3_5_0()))
	if err != nil {
		return err
	}
	defer cl.Close()
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = c.transactionalID(resource), id, epoch
	for _, p := range partitions.Sorted() {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = p.Topic, p.Partitions
		add.Topics = append(add.Topics, t)
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
	end.TransactionalID, end.ProducerID, end.ProducerEpoch = add.TransactionalID, id, epoch
	ended, err := end.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(ended.ErrorCode)
}
