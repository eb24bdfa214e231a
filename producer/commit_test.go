package producer_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The rows, the dead letter and the watermark are there together, in the form that docs/reference.md
// promises.
func TestRowsLettersAndWatermarkAreOneTransaction(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
		s.order(2, "2026-11-20T09:00:01Z", "Complete"))
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/3", Row: []byte(`{"id":3}`), Source: "rest",
		Field: "updated_at", Err: "missing"}}
	tx.Deletes = []int64{9}
	s.commit(session, tx)

	s.wantIDs(-9, 1, 2)
	for _, r := range s.committed("store.orders") {
		_, id, _ := schemas.ReadKey(r.Key)
		if id == 1 && r.Timestamp.UnixMilli() != instant(t, "2026-11-20T09:00:00Z").Millis() {
			t.Errorf("order 1 has the time %s, expected its updated_at", r.Timestamp)
		}
		if id == 9 {
			continue
		}
		if _, err := schemas.SchemaID(r.Value); err != nil {
			t.Error(err)
		}
	}
	letters := s.committed("store.dead_letters")
	if len(letters) != 1 || string(letters[0].Key) != "orders/3" || len(letters[0].Headers) != 4 ||
		string(letters[0].Headers[3].Value) != "missing" {
		t.Errorf("dead letters: %v", letters)
	}
	marks := s.committed("store.watermarks")
	if len(marks) != 1 {
		t.Fatalf("%d watermarks, expected 1", len(marks))
	}
	mark, err := watermark.Decode("orders", marks[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(mark, session.Watermark()) || mark.Rows != 2 || mark.Instance != "a" ||
		mark.Group != "storestream" ||
		mark.Partitions != 3 || mark.TopicID == "" {
		t.Errorf("watermark %+v, the session has %+v", mark, session.Watermark())
	}
}

// hashed lets the stage's orders have a hash.
func (s *stage) hashed() {
	key := [32]byte([]byte("a key of thirty-two bytes or mor"))
	fields := map[string]schemas.Policy{"orders.status": schemas.PolicyHash}
	if wrong := s.set.Protect(schemas.Privacy{Fields: fields, Key: key}); wrong != nil {
		s.t.Fatal(wrong)
	}
}

// A consumer sees by the record which key made its hashes. Without a hash a record is as it ever was.
func TestARecordOfARowSaysByWhichKeyItsFieldsAreHashed(t *testing.T) {
	for _, hashed := range []bool{false, true} {
		s := plainStage(t)
		if hashed {
			s.hashed()
		}
		session := s.take(s.cluster("a", nil))
		tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
			s.order(2, "2026-11-20T09:00:01Z", "Complete"))
		tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/3", Row: []byte(`{"id":3}`), Source: "rest",
			Field: "updated_at", Err: "missing"}, {Key: "orders/4"}}
		tx.Deletes = []int64{9}
		s.commit(session, tx)
		id := kgo.RecordHeader{Key: "privacy_key_id", Value: []byte(s.orders().KeyID())}
		for _, r := range append(s.committed("store.orders"), s.committed("store.dead_letters")...) {
			ids := slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return h.Key != id.Key })
			if want := hashed && r.Value != nil; len(ids) > 1 || (len(ids) == 1) != want ||
				want && string(ids[0].Value) != string(id.Value) {
				t.Errorf("hashed %t: %s %x has %v, expected %s", hashed, r.Topic, r.Key, r.Headers, id.Value)
			}
			if r.Topic == "store.orders" && len(r.Headers) != len(ids) {
				t.Errorf("hashed %t: a row has the headers %v", hashed, r.Headers)
			}
		}
	}
}

// A row that is stamped in the future, which brokers refuse, carries the time of writing; one before 1970
// carries 1970.
func TestRecordTimesAreOnesThatABrokerTakes(t *testing.T) {
	s := plainStage(t)
	now := time.Now().Truncate(time.Millisecond)
	session := s.take(s.cluster("a", func(c *producer.Config) { c.Now = func() time.Time { return now } }))
	tx := next(session, s.order(1, "2199-01-01T00:00:00Z", "Shipped"),
		s.order(2, "1931-01-01T00:00:00Z", "Shipped"))
	tx.Watermark.DedupFrom = schemas.MaxInstant
	s.commit(session, tx)
	for _, r := range s.committed("store.orders") {
		_, id, _ := schemas.ReadKey(r.Key)
		if want := map[int64]int64{1: now.UnixMilli(), 2: 0}[id]; r.Timestamp.UnixMilli() != want {
			t.Errorf("order %d has the time %d, expected %d", id, r.Timestamp.UnixMilli(), want)
		}
	}
	if got := session.Watermark().DedupFrom; got > session.Watermark().Written {
		t.Errorf("dedup_from is %s, after the row that was written at %s", got, session.Watermark().Written)
	}
}

func TestASessionThatHasEndedWritesNothing(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	session.Close()
	err := session.Commit(s.ctx(), next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	if !errors.Is(err, producer.ErrLost) {
		t.Errorf("commit after close: %v, expected ErrLost", err)
	}
}

// A client that has not published a topic's partitions to itself takes a transaction that wrote to them
// for an empty one: it aborts it and says that it was committed.
func TestNothingIsCommittedBeforeTheClientShowsThePartitionsThatItWrote(t *testing.T) {
	s := plainStage(t)
	ctx, cancel := context.WithCancelCause(s.ctx())
	stopped := errors.New("stopped")
	waiting := make(chan error, 1)
	go func() { waiting <- producer.AwaitPartitions(ctx, s.cl, "store.watermarks") }()
	cancel(stopped)
	if err := <-waiting; !errors.Is(err, stopped) {
		t.Errorf("a client that has never written to the topic: %v", err)
	}
	session := s.take(s.cluster("a", nil))
	s.commit(session, next(session)) // a watermark alone
	s.produce(&kgo.Record{Topic: "store.watermarks", Key: []byte("other"), Value: []byte("{}")})
	if err := producer.AwaitPartitions(s.ctx(), s.cl, "store.watermarks"); err != nil {
		t.Error(err)
	}
}
