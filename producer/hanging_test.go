//go:build kafka

package producer_test

import (
	"context"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
)

// A record of a transaction that the coordinator knows nothing of hides all that comes after it from every
// read_committed consumer, of all resources, and neither a timeout nor fencing ends it. An Apache Kafka made
// one by itself (takeover.hanging); here a broker that does not verify writes is made to. Whoever takes the
// resource over ends it, without publishing the record.
func TestTakingOverEndsATransactionThatTheBrokerHasForgotten(t *testing.T) {
	settings := map[string]string{"transaction.partition.verification.enable": "false"}
	broker := servers.KafkaForTest(t, servers.KafkaConfig{Settings: settings})
	s := setUp(t, nil, broker.Brokers())
	a := s.cluster("a", nil)
	session := s.take(a)
	s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	session.Close()

	for _, topic := range []string{"store.orders", "store.watermarks"} {
		s.hang("storestream-store.orders", topic)
	}
	successor := s.take(s.cluster("b", nil))
	s.commit(successor, next(successor, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	s.wantIDs(1, 2)
	// The watermark topic is everybody's: it can be read to its end again.
	users, err := producer.Take(s.ctx(), s.cluster("c", nil), s.set.Get("users"))
	if err != nil {
		t.Fatal(err)
	}
	users.Close()
}

// A transaction hangs under a producer id that its transactional id no longer has: it was not used for
// transactional.id.expiration.ms, or its epochs ran out. Fencing knows nothing of it.
// The error names it, and after an administrator has ended it the takeover goes on.
func TestTakingOverNamesATransactionOfAnEarlierProducerID(t *testing.T) {
	broker := servers.KafkaForTest(t, servers.KafkaConfig{Settings: map[string]string{
		"transaction.partition.verification.enable":                   "false",
		"transactional.id.expiration.ms":                              "4000",
		"transaction.remove.expired.transaction.cleanup.interval.ms":  "1000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
	}})
	s := setUp(t, nil, broker.Brokers())
	for _, topic := range []string{"store.orders", "store.watermarks", "store.dead_letters"} {
		for how, forget := range map[string]func(*stage, string){"expired": (*stage).expire,
			"out of epochs": (*stage).exhaust} {
			t.Run(topic+" "+how, func(t *testing.T) {
				s := *s
				s.t = t
				before := s.take(s.cluster("a", nil))
				rows := before.Watermark().Rows
				s.commit(before, next(before, s.order(rows+1, "2026-11-20T10:00:00Z", "Shipped")))
				before.Close()
				s.hang("storestream-store.orders", topic)
				forget(&s, "storestream-store.orders")

				c := s.cluster("b", nil)
				_, err := producer.Take(s.ctx(), c, s.orders())
				if !producer.Refused(err) {
					t.Fatalf("taking over: %v, expected a RefusedError", err)
				}
				wantText(t, err, "kafka-transactions.sh", "abort --topic "+topic)
				s.endOpen(topic)
				successor := s.take(c)
				s.commit(successor, next(successor, s.order(rows+2, "2026-11-20T10:00:00Z", "Shipped")))
				successor.Close()
				if got := len(s.ids("store.orders")); got != int(rows)+2 {
					t.Errorf("consumers see %d orders, expected %d", got, rows+2)
				}
				for _, shared := range []string{"store.watermarks", "store.dead_letters"} {
					s.committed(shared) // everybody can read it to its end
				}
			})
		}
	}
}

// What one resource left in a topic that all share does not wait for that resource to be taken over:
// perhaps nobody polls it any more.
func TestTakingOverEndsWhatAnotherResourceLeftInASharedTopic(t *testing.T) {
	settings := map[string]string{"transaction.partition.verification.enable": "false"}
	broker := servers.KafkaForTest(t, servers.KafkaConfig{Settings: settings})
	s := setUp(t, nil, broker.Brokers())
	orders := s.take(s.cluster("a", nil))
	s.commit(orders, next(orders, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	orders.Close()
	for _, topic := range []string{"store.watermarks", "store.dead_letters"} {
		s.hang("storestream-store.orders", topic)
		users, err := producer.Take(s.ctx(), s.cluster("b", nil), s.set.Get("users"))
		if err != nil {
			t.Fatal(err)
		}
		users.Close()
		s.committed(topic)
	}
	if got := s.take(s.cluster("c", nil)).Watermark().Rows; got != 1 {
		t.Errorf("the watermark of orders counts %d rows, expected 1", got)
	}
}

// An owner at work notices that consumers do not see what it commits.
func TestAnOwnerNoticesATransactionThatHidesItsCommits(t *testing.T) {
	settings := map[string]string{"transaction.partition.verification.enable": "false"}
	broker := servers.KafkaForTest(t, servers.KafkaConfig{Settings: settings})
	s := setUp(t, nil, broker.Brokers())
	first := s.take(s.cluster("a", nil))
	s.commit(first, next(first, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	first.Close()
	now := time.Now()
	c := s.cluster("b", func(c *producer.Config) { c.Now = func() time.Time { return now } })
	session := s.take(c)
	s.hang("somebody-else", "store.orders")
	s.exhaust("somebody-else")
	var err error
	commits := int64(0)
	for ; err == nil && commits < 4; commits++ {
		now = now.Add(time.Minute + time.Second)
		err = session.Commit(s.ctx(), next(session, s.order(2+commits, "2026-11-20T10:00:00Z", "Shipped")))
	}
	if !errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit %d: %v, expected ErrLost within three", commits, err)
	}
	wantText(t, err, "hangs and hides partition 0 of store.orders from offset")
	session.Close()
	if _, err := producer.Take(s.ctx(), c, s.orders()); !producer.Refused(err) {
		t.Errorf("taking over: %v, expected a RefusedError", err)
	}
	s.endOpen("store.orders")
	s.take(c)
	s.committed("store.orders")
}

// endOpen ends every open transaction in a topic, as kafka-transactions.sh abort does.
func (s *stage) endOpen(topic string) {
	s.t.Helper()
	described, err := s.admin.DescribeProducers(s.ctx(), kadm.TopicsSet{topic: s.partitions(topic)})
	if err != nil {
		s.t.Fatal(err)
	}
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset < 0 {
			return
		}
		_, err := s.admin.WriteTxnMarkers(s.ctx(), kadm.TxnMarkers{ProducerID: p.ProducerID,
			ProducerEpoch: p.ProducerEpoch, CoordinatorEpoch: max(p.CoordinatorEpoch, 0),
			Topics: kadm.TopicsSet{topic: {p.Partition: {}}}})
		if err != nil {
			s.t.Fatal(err)
		}
	})
}

// An owner commits through the end of a producer id's epochs, and owners die in the middle of commits
// there. Each version is there once.
func TestOwnersThatDieWhileTheProducerIDChangesPublishEachVersionOnce(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	session.Close()
	var before int64
	s.useEpochs("storestream-store.orders", func(producerID int64, epoch int16) bool {
		before = producerID
		return epoch > 32767-20
	})
	c := s.cluster("b", nil)
	session = s.take(c)
	const versions = 90
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := int64(1); i <= versions; i++ {
		tx := next(session, s.order(i%40+1, base.Add(time.Duration(i)*time.Second).Format(time.RFC3339), "Shipped"))
		tx.Watermark.Rows = i
		done, dying := make(chan error, 1), session
		go func() { done <- dying.Commit(s.ctx(), tx) }()
		if i%3 == 0 { // another takes over while it commits
			session = s.take(c)
		}
		if err := <-done; err == nil && i%3 != 0 {
			continue
		}
		dying.Abandon()
		if i%3 != 0 {
			session = s.take(c)
		}
		switch session.Watermark().Rows {
		case i:
		case i - 1:
			i-- // it was not committed: once more
		default:
			t.Fatalf("after commit %d the successor finds %d", i, session.Watermark().Rows)
		}
	}
	session.Close()
	described, err := s.admin.DescribeTransactions(s.ctx(), "storestream-store.orders")
	if err != nil || described["storestream-store.orders"].ProducerID == before {
		t.Errorf("the producer id is still %d (%v)", before, err)
	}
	seen := map[string]bool{}
	for _, r := range s.committed("store.orders") {
		if seen[string(r.Value)] {
			t.Errorf("a version is there twice, at offset %d of partition %d", r.Offset, r.Partition)
		}
		seen[string(r.Value)] = true
	}
	if len(seen) != versions {
		t.Errorf("%d versions of %d are there", len(seen), versions)
	}
}

// expire waits until the broker has forgotten a transactional id.
func (s *stage) expire(transactionalID string) {
	for ask := time.NewTicker(100 * time.Millisecond); s.t.Context().Err() == nil; <-ask.C {
		listed, err := s.admin.ListTransactions(s.ctx(), nil, nil)
		if _, known := listed[transactionalID]; err == nil && !known {
			return
		}
	}
}

// exhaust uses a transactional id's epochs up: the next producer has another producer id.
func (s *stage) exhaust(transactionalID string) {
	s.t.Helper()
	before := int64(-1)
	s.useEpochs(transactionalID, func(producerID int64, _ int16) bool {
		other := before >= 0 && producerID != before
		before = producerID
		return other
	})
}

// useEpochs asks for epochs of a transactional id until enough says so.
func (s *stage) useEpochs(transactionalID string, enough func(producerID int64, epoch int16) bool) {
	s.t.Helper()
	for range 1 << 16 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &transactionalID, 60_000
		req.ProducerID, req.ProducerEpoch = -1, -1
		answer, err := req.RequestWith(context.Background(), s.cl)
		switch {
		case err != nil:
			s.t.Fatal(err)
		case answer.ErrorCode != 0: // it is at work on the one before
		case enough(answer.ProducerID, answer.ProducerEpoch):
			return
		}
	}
	s.t.Fatalf("%s has epochs left", transactionalID)
}

// hang writes a record to each partition of topic as the producer that the transactional id stands for,
// outside of any transaction that its coordinator knows.
func (s *stage) hang(transactionalID, topic string) {
	s.t.Helper()
	ctx := s.ctx()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.TransactionalID(transactionalID),
		kgo.MaxVersions(kversion.V3_5_0()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for p := range s.partitions(topic) {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = p, transactional(id, epoch)
		t := kmsg.NewProduceRequestTopic()
		t.Topic, t.Partitions = topic, append(t.Partitions, part)
		req := kmsg.NewPtrProduceRequest()
		req.TransactionID, req.Acks, req.TimeoutMillis = &transactionalID, -1, 10_000
		req.Topics = append(req.Topics, t)
		s.send(ctx, cl, req)
	}
}

// partitions are those of a topic.
func (s *stage) partitions(topic string) map[int32]struct{} {
	s.t.Helper()
	found, err := s.admin.ListTopics(s.ctx(), topic)
	if err != nil {
		s.t.Fatal(err)
	}
	return found.TopicsSet()[topic]
}

// transactional is a batch of one record, the first of a producer's epoch.
func transactional(id int64, epoch int16) []byte {
	record := kmsg.Record{Key: []byte("orders"), Value: []byte("not to be published")}
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	records := record.AppendTo(nil)
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, Attributes: 0x10,
		FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: id, ProducerEpoch: epoch, NumRecords: 1, Records: records}
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	raw := batch.AppendTo(nil)
	batch.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch.AppendTo(nil)
}
