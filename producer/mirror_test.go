package producer_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
)

// mirror copies topics record by record to another cluster, as MirrorMaker does: keys, values, headers and
// times stay; offsets and topic ids do not, and there are no transactions.
func (s *stage) mirror(to *stage, topics ...string) {
	s.t.Helper()
	for _, topic := range topics {
		policy := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
		if _, err := to.admin.CreateTopic(s.ctx(), 3, 1, policy, topic); err != nil {
			s.t.Fatal(err)
		}
		cl, err := kgo.NewClient(kgo.SeedBrokers(to.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range s.committed(topic) {
			r = &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers,
				Timestamp: r.Timestamp}
			if err := cl.ProduceSync(s.ctx(), r).FirstErr(); err != nil {
				s.t.Fatal(err)
			}
		}
		cl.Close()
	}
}

// A failover to a cluster that MirrorMaker has filled. Nobody can tell there how much of the data topic has
// arrived, so everything is published once more. Where the registry is another one too the keys have other
// schema ids, and the resource is blocked until the copy is deleted. docs/operations.md says so.
func TestATopicThatWasMirroredToAnotherClusterIsFilledFromTheStart(t *testing.T) {
	for name, sameRegistry := range map[string]bool{"the same registry": true, "another registry": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, away := newStage(t), newStage(t)
			session := home.take(home.cluster("a", nil))
			home.commit(session, next(session, home.order(1, "2026-11-20T09:00:00Z", "Shipped"),
				home.order(2, "2026-11-20T09:00:00Z", "Shipped")))
			home.commit(session, next(session, home.order(1, "2026-11-20T10:00:00Z", "Shipped")))
			session.Close()
			home.mirror(away, "store.orders", "store.watermarks", "store.dead_letters")
			if sameRegistry {
				away.registry = home.registry
			} else {
				away.registry = servers.RegistryForTest(t)
				away.registerSchema("somebody-elses", `"string"`) // so that ids differ
			}
			c := away.cluster("a", nil)
			if !sameRegistry {
				_, err := producer.Take(away.ctx(), c, away.orders())
				var refused *producer.RefusedError
				if !errors.As(err, &refused) {
					t.Fatalf("taking over: %v, expected the keys to be refused", err)
				}
				wantText(t, err, "the schema id of its keys is", "this registry", "docs/operations.md")
				if _, err := away.admin.DeleteTopics(away.ctx(), "store.orders"); err != nil {
					t.Fatal(err)
				}
			}
			session = away.take(c)
			if got := session.Watermark(); got.Rows != 0 {
				t.Errorf("watermark %+v: expected a first load", got)
			}
			away.commit(session, next(session, away.order(1, "2026-11-20T10:00:00Z", "Shipped"),
				away.order(2, "2026-11-20T09:00:00Z", "Shipped")))
			if sameRegistry {
				away.wantIDs(1, 1, 1, 2, 2)
			} else {
				away.wantIDs(1, 2)
			}
		})
	}
}
