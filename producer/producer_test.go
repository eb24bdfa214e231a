package producer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// A stage is a broker and a registry, and what the tests do to them.
type stage struct {
	t        *testing.T
	broker   *servers.Broker // the embedded one, whose faults are ours to choose; nil on Apache Kafka
	brokers  []string
	registry *servers.Registry
	set      *schemas.Set
	cl       *kgo.Client
	admin    *kadm.Client
}

func newStage(t *testing.T, options ...kfake.Opt) *stage {
	t.Helper()
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: options})
	return setUp(t, broker, broker.Brokers())
}

// withoutIDs is a broker of before topic ids.
func withoutIDs() kfake.Opt { return kfake.MaxVersions(kversion.V2_7_0()) }

func setUp(t *testing.T, broker *servers.Broker, brokers []string) *stage {
	t.Helper()
	s := &stage{t: t, broker: broker, brokers: brokers, registry: servers.RegistryForTest(t)}
	var err error
	if s.set, err = schemas.Load(""); err != nil {
		t.Fatal(err)
	}
	s.cl, err = kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.MetadataMinAge(10*time.Millisecond),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(asOwnersDo)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cl.Close)
	s.admin = kadm.NewClient(s.cl)
	return s
}

// asOwnersDo writes rows to their keys' partitions, and all else to the state partition.
func asOwnersDo(topic string) func(*kgo.Record, int) int {
	if topic != "store.orders" {
		return func(*kgo.Record, int) int { return 0 }
	}
	return func(r *kgo.Record, n int) int { return int(producer.PartitionOf(string(r.Key), n)) }
}

// cluster opens another instance on the stage. change may be nil.
func (s *stage) cluster(instance string, change func(*producer.Config)) *producer.Cluster {
	s.t.Helper()
	registry, err := registry.New(registry.Config{URL: s.registry.URL})
	if err != nil {
		s.t.Fatal(err)
	}
	config := producer.Config{Brokers: s.brokers, TopicPrefix: "store.", Partitions: 3, Group: "storestream",
		Instance: instance, Registry: registry, AutoRegister: true,
		Log: zaptest.NewLogger(s.t, zaptest.Level(zap.WarnLevel))}
	if change != nil {
		change(&config)
	}
	c, err := producer.Open(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *stage) orders() *schemas.Resource { return s.set.Get("orders") }

// take takes orders over, and closes the session when the test ends.
func (s *stage) take(c *producer.Cluster) *producer.Session {
	s.t.Helper()
	session, err := producer.Take(s.ctx(), c, s.orders())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(session.Close)
	return session
}

// ctx ends long after anything here should.
func (s *stage) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *stage) commit(session *producer.Session, tx watermark.Transaction) {
	s.t.Helper()
	if err := session.Commit(s.ctx(), tx); err != nil {
		s.t.Fatal(err)
	}
}

// send sends a produce request for one partition, which has to be accepted.
func (s *stage) send(ctx context.Context, cl *kgo.Client, req *kmsg.ProduceRequest) {
	s.t.Helper()
	answer, err := req.RequestWith(ctx, cl)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode); err != nil {
		s.t.Fatal(err)
	}
}

// order is an order as a source hands it over.
func (s *stage) order(id int64, updated string, status string) schemas.Record {
	s.t.Helper()
	row := fmt.Sprintf(`{"id":%d,"user_id":7,"status":%q,"total_amount":"49.50",`+
		`"created_at":"2020-01-01T00:00:00Z","updated_at":%q}`, id, status, updated)
	record, reject := schemas.NewRowParser(s.orders()).Parse([]byte(row))
	if reject != nil {
		s.t.Fatalf("%s: %s %s", row, reject.Field, reject.Err)
	}
	return record
}

// next is a transaction that goes on from the session's watermark: rows, and settled at their last.
func next(session *producer.Session, rows ...schemas.Record) watermark.Transaction {
	mark := session.Watermark()
	for _, r := range rows {
		mark.Settled = max(mark.Settled, r.UpdatedAt)
		mark.DedupFrom = min(mark.DedupFrom, r.UpdatedAt)
	}
	mark.Rows += int64(len(rows))
	return watermark.Transaction{Rows: rows, Watermark: mark}
}

// committed is what a read_committed consumer sees in topic, in the order of offsets within a partition. It
// reads to the high watermark: on a real broker a commit is answered before its markers stand in every
// partition, so the stable offset is still behind.
func (s *stage) committed(topic string) []*kgo.Record {
	s.t.Helper()
	ctx := s.ctx()
	ends, err := s.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		s.t.Fatal(err)
	}
	starts := make(map[int32]kgo.Offset)
	left := make(map[int32]int64)
	ends.Each(func(o kadm.ListedOffset) {
		starts[o.Partition] = kgo.NewOffset().AtStart()
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	var seen []*kgo.Record
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			s.t.Fatalf("topic %s: partitions %v were not read to the end", topic, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				seen = append(seen, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	slices.SortFunc(seen, func(a, b *kgo.Record) int {
		return int(a.Partition-b.Partition)*1e9 + int(a.Offset-b.Offset)
	})
	return seen
}

// ids are the ids of the orders in the topic that a read_committed consumer sees, tombstones as negative,
// sorted.
func (s *stage) ids(topic string) []int64 {
	s.t.Helper()
	var ids []int64
	for _, r := range s.committed(topic) {
		_, id, err := schemas.ReadKey(r.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		if r.Value == nil {
			id = -id
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (s *stage) wantIDs(ids ...int64) {
	s.t.Helper()
	if got := s.ids("store.orders"); !slices.Equal(got, ids) {
		s.t.Errorf("store.orders holds %v, expected %v", got, ids)
	}
}

// rebuilt is what Rebuild gives, by id.
func (s *stage) rebuilt(session *producer.Session) map[int64]watermark.Published {
	s.t.Helper()
	seen := make(map[int64]watermark.Published)
	var mu sync.Mutex
	err := session.Rebuild(s.ctx(), func(p watermark.Published) error {
		if !mu.TryLock() {
			s.t.Error("two records were given at once")
		} else {
			defer mu.Unlock()
		}
		seen[p.ID] = p
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

func instant(t testing.TB, text string) schemas.Instant {
	t.Helper()
	var i schemas.Instant
	if err := i.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return i
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
