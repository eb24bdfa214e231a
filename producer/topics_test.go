package producer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

func TestTopicsAreMadeToHoldStateForEver(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	if err := producer.EnsureTopics(s.ctx(), c, "orders", "users"); err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]string{"store.orders": "compact", "store.users": "compact",
		"store.watermarks": "compact", "store.dead_letters": "compact", "store.requests": "delete"} {
		settings, err := s.admin.DescribeTopicConfigs(s.ctx(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range settings[0].Configs {
			if config.Key == "cleanup.policy" && *config.Value != want {
				t.Errorf("topic %s has cleanup.policy %s, expected %s", topic, *config.Value, want)
			}
		}
	}
	if err := producer.EnsureTopics(s.ctx(), c, "orders", "users"); err != nil {
		t.Errorf("finding what it made: %v", err)
	}
}

// What a topic with personal data forgets, and when, is not left to the brokers' defaults.
func TestTopicsWithRowsForgetWhatWasDeletedInTime(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", func(c *producer.Config) { c.EraseWithin = time.Hour })
	if err := producer.EnsureTopics(s.ctx(), c, "orders"); err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]map[string]string{
		"store.orders":       {"max.compaction.lag.ms": "3600000", "delete.retention.ms": "604800000"},
		"store.dead_letters": {"max.compaction.lag.ms": "3600000"},
	} {
		settings, err := s.admin.DescribeTopicConfigs(s.ctx(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range settings[0].Configs {
			if value, wanted := want[c.Key]; wanted && *c.Value == value {
				delete(want, c.Key)
			}
		}
		if len(want) > 0 {
			t.Errorf("topic %s lacks %v", topic, want)
		}
	}
	longer := s.cluster("b", func(c *producer.Config) { c.EraseWithin = time.Minute })
	found, err := producer.Rehearse(s.ctx(), longer, s.orders())
	var named []string
	for _, concern := range found.Concerns {
		named = append(named, concern.Topic+" "+concern.Setting)
	}
	want := []string{"store.dead_letters max.compaction.lag.ms", "store.orders max.compaction.lag.ms"}
	if err != nil || !slices.Equal(named, want) {
		t.Errorf("%q, %v", named, err)
	}
}

// awaitTopic returns when the broker shows a topic. Apache Kafka's controller has a new one earlier.
func (s *stage) awaitTopic(topic string) {
	for ask := time.NewTicker(10 * time.Millisecond); s.t.Context().Err() == nil; <-ask.C {
		if configs, err := s.admin.DescribeTopicConfigs(s.ctx(), topic); err == nil && configs[0].Err == nil {
			return
		}
	}
}

func TestATopicThatWouldLoseDataIsRefusedAndLeftAsItIs(t *testing.T) {
	for name, test := range map[string]struct {
		topic, setting, value, expected string
		partitions                      int32
	}{
		"not compacted":          {"store.orders", "cleanup.policy", "delete", "compact", 3},
		"compacted, but deleted": {"store.orders", "cleanup.policy", "compact,delete", "compact", 3},
		"times of the broker":    {"store.orders", "message.timestamp.type", "LogAppendTime", "CreateTime", 3},
		"watermarks deleted":     {"store.watermarks", "cleanup.policy", "delete", "compact", 3},
		"requests kept an hour":  {"store.requests", "retention.ms", "3600000", "604800000 (or more)", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := plainStage(t)
			settings := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
			if test.topic == "store.requests" {
				settings["cleanup.policy"] = kadm.StringPtr("delete")
			}
			settings[test.setting] = &test.value
			if _, err := s.admin.CreateTopic(s.ctx(), test.partitions, 1, settings, test.topic); err != nil {
				t.Fatal(err)
			}
			s.awaitTopic(test.topic)
			c := s.cluster("a", nil)
			_, rehearsed := producer.Rehearse(s.ctx(), c, s.orders())
			_, err := producer.Take(s.ctx(), c, s.orders())
			var refused *producer.RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("taking over: %v, expected a RefusedError", err)
			}
			if rehearsed == nil || !strings.Contains(err.Error(), rehearsed.Error()) {
				t.Errorf("a takeover says %v, and its rehearsal %v", err, rehearsed)
			}
			if refused.Topic != test.topic || refused.Expected != test.expected || refused.Do == "" {
				t.Errorf("refused %+v", refused)
			}
			wantText(t, err, test.topic, test.expected)
			after, err := s.admin.DescribeTopicConfigs(s.ctx(), test.topic)
			if err != nil {
				t.Fatal(err)
			}
			for _, config := range after[0].Configs {
				if config.Key == test.setting && *config.Value != test.value {
					t.Errorf("%s is now %s", test.setting, *config.Value)
				}
			}
		})
	}
}

// A topic that was deleted and made anew holds nothing of what the watermark says was published.
func TestADataTopicThatWasMadeAnewIsAFirstLoad(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.Watermark.Request = 5
	s.commit(session, tx)
	s.remake(c, "store.orders")
	s.commitsLost(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped"))
	session.Close()
	again := s.take(c)
	if got := again.Watermark(); got.Settled != schemas.MinInstant || got.Rows != 0 || got.Request != 5 {
		t.Errorf("watermark %+v: expected a first load that remembers request 5", got)
	}
	s.commit(again, next(again, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.wantIDs(1)
}

func TestADataTopicWithAnotherPartitionCountIsRefused(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	session.Close()
	if _, err := s.admin.CreatePartitions(s.ctx(), 2, "store.orders"); err != nil {
		t.Fatal(err)
	}
	_, err := producer.Take(s.ctx(), s.cluster("b", nil), s.orders())
	var refused *producer.RefusedError
	if !errors.As(err, &refused) || refused.Found != "5" {
		t.Errorf("taking over: %v, expected 5 partitions to be refused", err)
	}
}

// Somebody changes a setting under an owner, and from then on Kafka would delete rows that nobody touches.
func TestASettingThatIsChangedUnderAnOwnerIsNoticedWithinAMinute(t *testing.T) {
	for _, test := range []struct{ topic, key, bad, good string }{
		{"store.orders", "cleanup.policy", "compact,delete", "compact"},
		{"store.watermarks", "cleanup.policy", "delete", "compact"},
		{"store.dead_letters", "cleanup.policy", "delete", "compact"},
		{"store.requests", "retention.ms", "60000", "604800000"},
	} {
		t.Run(test.topic, func(t *testing.T) {
			s := plainStage(t)
			now := time.Now()
			c := s.cluster("a", func(c *producer.Config) { c.Now = func() time.Time { return now } })
			session := s.take(c)
			s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
			s.alter(test.topic, test.key, test.bad)
			s.commit(session, next(session, s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
			now = now.Add(time.Minute)
			err := session.Commit(s.ctx(), next(session, s.order(3, "2026-11-20T09:00:00Z", "Shipped")))
			var refused *producer.RefusedError
			if !errors.Is(err, producer.ErrLost) || !errors.As(err, &refused) || refused.Topic != test.topic ||
				refused.Found != test.bad {
				t.Fatalf("commit: %v, expected ErrLost because of %s", err, test.topic)
			}
			session.Close()
			s.wantIDs(1, 2)
			if _, err := producer.Take(s.ctx(), c, s.orders()); !errors.As(err, &refused) {
				t.Errorf("taking over: %v, expected a RefusedError", err)
			}
			s.alter(test.topic, test.key, test.good)
			session = s.take(c)
			s.commit(session, next(session, s.order(3, "2026-11-20T09:00:00Z", "Shipped")))
			s.wantIDs(1, 2, 3)
		})
	}
}

// alter changes a setting of a topic, and waits until the broker has it: the controller answers before that.
func (s *stage) alter(topic, key, value string) {
	s.t.Helper()
	changed, err := s.admin.AlterTopicConfigs(s.ctx(),
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic)
	if err == nil {
		_, err = changed.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	for has := false; !has && err == nil; {
		var now kadm.ResourceConfigs
		if now, err = s.admin.DescribeTopicConfigs(s.ctx(), topic); err == nil {
			has = slices.ContainsFunc(now[0].Configs, func(c kadm.Config) bool {
				return c.Key == key && c.Value != nil && *c.Value == value
			})
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Brokers have an upper bound for the time that a transaction may take.
func TestATransactionTimeoutThatTheBrokersRefuseIsSaid(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	before := producer.SetTransactionTimeout(time.Hour)
	t.Cleanup(func() { producer.SetTransactionTimeout(before) })
	_, err := producer.Take(s.ctx(), c, s.orders())
	var refused *producer.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("taking over: %v, expected a RefusedError", err)
	}
	wantText(t, err, "1h0m0s", "transaction.max.timeout.ms")
}

// Under another schema id the same row has another key, and compaction keeps both. What is no key of ours is
// no row: a stray record holds nothing.
func TestKeysOfAnotherSchemaIDAreRefusedAndStrayRecordsPassedOver(t *testing.T) {
	for name, c := range map[string]struct {
		key     func(*stage) []byte
		refused bool
	}{
		"another id": {func(s *stage) []byte {
			same := strings.Replace(s.orders().KeySchema(), `"type"`, `"doc":"also registered elsewhere","type"`, 1)
			s.registry.Fake.SeedSchema("elsewhere-key", 1, 999, sr.Schema{Schema: same})
			return s.key(999, 1)
		}, true},
		"no header": {func(*stage) []byte { return []byte("1") }, false},
		"no key":    {func(*stage) []byte { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t) // Apache Kafka itself refuses a null key in a compacted topic
			cluster := s.cluster("a", nil)
			if err := producer.EnsureTopics(s.ctx(), cluster, "orders"); err != nil {
				t.Fatal(err)
			}
			s.produce(&kgo.Record{Topic: "store.orders", Key: c.key(s)})
			_, err := producer.Take(s.ctx(), cluster, s.orders())
			var refused *producer.RefusedError
			switch {
			case !c.refused && err != nil:
				t.Fatalf("taking over: %v, expected the record to be passed over", err)
			case c.refused && !errors.As(err, &refused):
				t.Fatalf("taking over: %v, expected a RefusedError", err)
			case c.refused:
				wantText(t, err, "store.orders", "schema id", "offset 0")
			}
		})
	}
}

// While the registry does not answer nothing is fenced and nothing is lost.
func TestARegistryThatIsDownFencesNobody(t *testing.T) {
	s := plainStage(t)
	first := s.take(s.cluster("a", nil))
	if err := s.registry.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err := producer.Take(s.ctx(), s.cluster("b", nil), s.orders())
	if err == nil || !registry.Retryable(err) {
		t.Errorf("taking over without a registry: %v, expected what waiting may mend", err)
	}
	s.commit(first, next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.wantIDs(1)
}

// A record that was taken for small enough and is not would abort every transaction with it.
func TestARecordOfTheLargestSizeIsTaken(t *testing.T) {
	t.Run("plain", func(t *testing.T) { takesTheLargest(plainStage(t)) })
	t.Run("with a header", func(t *testing.T) {
		s := plainStage(t)
		s.hashed()
		takesTheLargest(s)
	})
}

func takesTheLargest(s *stage) {
	t := s.t
	for _, topic := range []string{"store.orders", "store.dead_letters"} {
		settings := map[string]*string{"cleanup.policy": kadm.StringPtr("compact"),
			"max.message.bytes": kadm.StringPtr("4096")}
		if _, err := s.admin.CreateTopic(s.ctx(), 3, 1, settings, topic); err != nil {
			t.Fatal(err)
		}
	}
	session := s.take(s.cluster("a", nil))
	around := watermark.RowOverhead(s.orders())
	fits := schemas.Record{ID: 1 << 60, Value: noise(session.MaxRecordBytes() - around)}
	if len(fits.Value) < 3900 {
		t.Errorf("a topic of 4096 bytes is said to take %d", len(fits.Value))
	}
	tx := next(session, fits)
	tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/1", Row: noise(9000), Err: "too large"},
		{Key: "orders/2", Row: noise(3000), Err: "fair"}}
	s.commit(session, tx)
	letters := session.DeadLetters()
	session.Close()
	again := s.take(s.cluster("b", nil))
	for key, hash := range letters {
		if again.DeadLetters()[key] != hash {
			t.Errorf("letter %s hashes to %x after a takeover, %x before", key, again.DeadLetters()[key], hash)
		}
	}
	err := again.Commit(s.ctx(), next(again, schemas.Record{ID: 1, Value: noise(5000)}))
	if !errors.Is(err, producer.ErrLost) {
		t.Errorf("a record over the limit: %v, expected ErrLost", err)
	}
	again.Close()
	again = s.take(s.cluster("c", nil))
	s.commit(again, next(again, s.order(3, "2026-11-20T09:00:00Z", "Shipped")))
	s.wantIDs(3, 1<<60)
}

// noise is n bytes that do not compress, after the room for a header.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}
