//go:build kafka

package producer_test

import (
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/storestream/storestream/internal/servers"
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
	if _, err := producer.Take(s.ctx(), s.cluster("c", nil), s.set.Get("users")); err != nil {
		t.Error(err)
	}
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
	for p := range int32(3) {
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
