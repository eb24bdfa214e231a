package producer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
)

// awaitLook looks until check holds: what was committed this moment need not be readable yet.
func (s *stage) awaitLook(w *producer.Watch, what string, check func() bool) {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := w.Look(s.ctx()); err == nil && check() { // it fails while a topic is being made
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("not within 30s: %s; watermarks %v, letters %v", what, w.Watermarks(), w.DeadLetters())
		}
	}
}

func letter(key, field, text string) watermark.DeadLetter {
	return watermark.DeadLetter{Key: key, Row: []byte(`{"email":"ana@example.com"}`), Source: "rest",
		Field: field, Err: text}
}

func TestAWatchFollowsWatermarksAndGroupsDeadLettersByReason(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	w := producer.NewWatch(c)
	if err := w.Look(s.ctx()); err != nil || len(w.Watermarks()) != 0 || len(w.DeadLetters()) != 0 {
		t.Fatalf("%v %v %v, expected nothing", err, w.Watermarks(), w.DeadLetters())
	}
	tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.DeadLetters = []watermark.DeadLetter{letter("orders/7", "total_amount", "expected a number at byte 7"),
		letter("orders/8", "total_amount", "expected a number at byte 8"),
		letter("orders/00000000000000ff", "id", "expected an integer")}
	s.commit(session, tx)
	s.awaitLook(w, "one row and three letters", func() bool {
		return w.Watermarks()["orders"].Rows == 1 && len(w.DeadLetters()["orders"]) == 2
	})
	if got := w.Watermarks()["orders"]; got.Instance != "a" || got.Settled != tx.Watermark.Settled {
		t.Errorf("watermark %+v", got)
	}
	money := w.DeadLetters()["orders"][0]
	slices.Sort(money.IDs)
	if money.Field != "total_amount" || money.Error != "expected a number" || money.Rows != 2 ||
		!slices.Equal(money.IDs, []string{"7", "8"}) || money.Latest.IsZero() {
		t.Errorf("%+v", money)
	}

	tx = next(session)
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/7", Source: "rest"}} // it is well again
	tx.Watermark.Rows = 5
	s.commit(session, tx)
	s.awaitLook(w, "five rows and one letter less", func() bool {
		return w.Watermarks()["orders"].Rows == 5 && w.DeadLetters()["orders"][0].Rows == 1
	})
}

// Otherwise it would go on showing the old topic's watermarks of resources that the new one does not hold.
func TestAWatchBeginsAnewWithATopicThatWasCreatedAnew(t *testing.T) {
	t.Parallel()
	s := plainStage(t)
	one := func(config *producer.Config) { config.Partitions = 1 }
	c := s.cluster("a", one)
	session := s.take(c)
	w := producer.NewWatch(c)
	for range 3 {
		s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	}
	users, err := producer.Take(s.ctx(), c, s.set.Get("users"))
	if err != nil {
		t.Fatal(err)
	}
	s.commit(users, next(users))
	users.Close()
	session.Close()
	s.awaitLook(w, "both", func() bool { return w.Watermarks()["orders"].Rows == 3 && len(w.Watermarks()) == 2 })
	if _, err := s.admin.DeleteTopics(s.ctx(), "store.watermarks"); err != nil {
		t.Fatal(err)
	}
	b := s.cluster("b", one)
	session = s.take(b)
	for range 9 { // more than the old one held
		s.commit(session, next(session))
	}
	s.awaitLook(w, "what the new topic says and no more", func() bool {
		return w.Watermarks()["orders"].Instance == "b" && len(w.Watermarks()) == 1
	})
}

func TestAStrangersRecordsDoNotStopAWatch(t *testing.T) {
	// Apache Kafka takes no record without a key while a topic is compacted; one from before may hold some.
	s := newStage(t)
	c := s.cluster("a", nil)
	s.commit(s.take(c), watermark.Transaction{Watermark: watermark.New("orders")})
	w := producer.NewWatch(c)
	s.awaitLook(w, "a watermark", func() bool { return len(w.Watermarks()) == 1 })
	s.produce(&kgo.Record{Topic: "store.watermarks", Key: []byte("users"), Value: []byte("?")},
		&kgo.Record{Topic: "store.dead_letters", Key: []byte("no slash"), Value: []byte("?")},
		&kgo.Record{Topic: "store.dead_letters"})
	if err := w.Look(s.ctx()); err != nil || len(w.Watermarks()) != 1 || len(w.DeadLetters()) != 0 {
		t.Errorf("%v %v %v", err, w.Watermarks(), w.DeadLetters())
	}
}

func TestTheClientsOfAllTakeoversAreCountedTogether(t *testing.T) {
	s := plainStage(t)
	m := metrics.New(prometheus.NewRegistry()).Kafka
	c := s.cluster("a", func(config *producer.Config) { config.Metrics = m })
	for range 2 {
		session := s.take(c)
		s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
		session.Close()
	}
	// The client counts a batch in a goroutine of its own, maybe after the transaction has ended.
	records := func() float64 { return testutil.ToFloat64(m.ProduceRecords.WithLabelValues("store.orders")) }
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := s.ctx(); records() < 2 && ctx.Err() == nil; {
		<-tick.C
	}
	if got := records(); got != 2 {
		t.Errorf("%v records, expected 2", got)
	}
	if testutil.CollectAndCount(m.RequestDuration) == 0 || testutil.CollectAndCount(m.Connects) == 0 ||
		testutil.CollectAndCount(m.WriteBytes) == 0 {
		t.Error("no requests, connections or bytes were counted")
	}
}
