//go:build kafka

package producer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
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
	quick := func(c *producer.Config) {
		c.Partitions, c.EraseWithin, c.Compression = 1, 2*time.Second, "none"
	}
	log := filepath.Join(kafka.Data(), "store.orders-0")
	session := s.take(s.cluster("a", quick))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", planted)))
	if !holds(t, log, planted) {
		t.Fatal("the topic does not hold the row that is to be deleted")
	}
	tx := next(session)
	tx.Deletes = []int64{1}
	s.commit(session, tx)
	end := time.Now().Add(time.Minute) // only ends a test that fails
	for holds(t, log, planted) {
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

// holds says whether a segment of the partition's log holds text, whatever a consumer would be shown of it.
func holds(t *testing.T, log, text string) bool {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(log, "*.log*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("the partition has no segments in %s: %v", log, err)
	}
	for _, segment := range segments {
		if strings.HasSuffix(segment, ".deleted") {
			continue // compaction has replaced it, and the broker removes it in a minute
		}
		// One that cannot be read has another name by now: it may hold it, and the next look tells.
		if data, err := os.ReadFile(segment); err != nil || bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}
