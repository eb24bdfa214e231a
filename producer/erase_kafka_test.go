//go:build kafka

package producer_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/producer"
)

// A week is two seconds here. While other rows change, every segment that held the deleted one is compacted
// within some of them; with the broker's own settings it stays for as long as half of its log is new.
func TestADeletedRowLeavesEverySegmentOnceTheTimeForItIsOver(t *testing.T) {
	const planted = "Planted-4711"
	kafka := servers.KafkaForTest(t, servers.KafkaConfig{Settings: map[string]string{
		"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "100"}})
	s := setUp(t, nil, kafka.Brokers())
	quick := func(c *producer.Config) { c.Partitions, c.EraseWithin = 1, 2*time.Second }
	session := s.take(s.cluster("a", quick))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", planted)))
	tx := next(session)
	tx.Deletes = []int64{1}
	s.commit(session, tx)
	end := time.Now().Add(time.Minute) // only ends a test that fails
	for s.holds("store.orders", planted) {
		if time.Now().After(end) {
			t.Fatal("the topic still holds the row that was deleted")
		}
		now := time.Now().UTC().Format(time.RFC3339Nano)
		s.commit(session, next(session, s.order(2, now, "Shipped")))
	}
	if ids := s.ids("store.orders"); ids[0] != -1 {
		t.Errorf("the topic holds %v, expected the tombstone of order 1 for consumers that were away", ids)
	}
}

// holds says whether a record of the topic, in whichever segment, holds text.
func (s *stage) holds(topic, text string) bool {
	for _, r := range s.committed(topic) {
		if bytes.Contains(r.Value, []byte(text)) {
			return true
		}
	}
	return false
}
