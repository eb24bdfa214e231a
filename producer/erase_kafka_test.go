//go:build kafka

package producer_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// A week is two seconds here. While other rows and letters change, every segment that held a deleted one is
// compacted within some of them; with the broker's own settings it stays for as long as half of its log is
// new.
func TestADeletedRowAndItsDeadLetterLeaveEverySegmentOnceTheTimeForItIsOver(t *testing.T) {
	const planted = "Planted-4711"
	kafka := servers.KafkaForTest(t, servers.KafkaConfig{Settings: map[string]string{
		"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "100"}})
	s := setUp(t, nil, kafka.Brokers())
	cluster := s.cluster("a", func(c *producer.Config) {
		c.Partitions, c.EraseWithin, c.Compression = 1, 2*time.Second, "none"
	})
	orders := s.take(cluster)
	users, err := producer.Take(s.ctx(), cluster, s.set.Get("users"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(users.Close)
	letter := func(id int64, row []byte) []watermark.DeadLetter {
		return []watermark.DeadLetter{{Key: fmt.Sprintf("users/%d", id), Row: row, Source: "rest", Field: "age"}}
	}
	s.commit(orders, next(orders, s.order(1, "2026-11-20T09:00:00Z", planted)))
	tx := next(users, s.user(1, "2026-11-20T09:00:00Z", planted))
	tx.DeadLetters = letter(1, fmt.Appendf(nil, `{"id":1,"street_address":%q,"age":"old"}`, planted))
	s.commit(users, tx)
	// whose tells which topics' logs hold what is to go.
	whose := func() (topics []string) {
		for _, topic := range []string{"store.orders", "store.users", "store.dead_letters"} {
			if holds(t, filepath.Join(kafka.Data(), topic+"-0"), planted) {
				topics = append(topics, topic)
			}
		}
		return topics
	}
	if held := whose(); len(held) != 3 {
		t.Fatalf("only %v hold the rows that are to be deleted", held)
	}
	tx = next(orders)
	tx.Deletes = []int64{1}
	s.commit(orders, tx)
	tx = next(users)
	tx.Deletes, tx.DeadLetters = []int64{1}, letter(1, nil)
	s.commit(users, tx)
	end := time.Now().Add(time.Minute) // only ends a test that fails
	for len(whose()) > 0 {
		if time.Now().After(end) {
			t.Fatalf("%v still hold what was deleted", whose())
		}
		now := time.Now().UTC().Format(time.RFC3339Nano)
		s.commit(orders, next(orders, s.order(2, now, "Shipped")))
		tx := next(users, s.user(2, now, "High Street"))
		tx.DeadLetters = letter(2, []byte(now))
		s.commit(users, tx)
	}
	for _, topic := range []string{"store.orders", "store.users"} {
		if ids := s.ids(topic); ids[0] != -1 {
			t.Errorf("%s holds %v, expected the tombstone of row 1 for consumers that were away", topic, ids)
		}
	}
}

// user is a user as a source hands it over.
func (s *stage) user(id int64, updated, street string) schemas.Record {
	s.t.Helper()
	row := fmt.Sprintf(`{"id":%d,"street_address":%q,"created_at":"2020-01-01T00:00:00Z","updated_at":%q}`,
		id, street, updated)
	record, reject := schemas.NewRowParser(s.set.Get("users")).Parse([]byte(row))
	if reject != nil {
		s.t.Fatalf("%s: %s %s", row, reject.Field, reject.Err)
	}
	return record
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
