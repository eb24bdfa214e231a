package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// client is the options of a client of this test's own, and more.
func (s *stack) client(more ...kgo.Opt) []kgo.Opt {
	return slices.Concat([]kgo.Opt{kgo.SeedBrokers(s.brokers...)}, s.login, more)
}

// admin is a client for what an administrator might do to the topics.
func (s *stack) admin() *kadm.Client {
	s.t.Helper()
	cl, err := kgo.NewClient(s.client()...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

// Answers to commits get lost again and again, whether the broker carried the commit out or not.
func TestCommitsOfUnknownOutcomeLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	s := start(t, setup{embedded: true, yaml: quick, fake: smallShop(50)})
	s.fake.StartTraffic(40)
	p := s.spawn("run")
	p.isReady()
	var n, lost atomic.Int64
	s.broker.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		if n.Add(1)%7 != 0 || lost.Load() >= 12 {
			return nil, nil, false
		}
		lost.Add(1)
		answer := req.ResponseKind().(*kmsg.EndTxnResponse)
		answer.ErrorCode = kerr.UnknownServerError.Code
		return answer, nil, true
	})
	eventually(t, "a dozen commits are lost", func() (bool, string) { return lost.Load() >= 12, "" })
	s.changes(60)
	s.quiet()
	p.isReady()
}

// A producer whose writes are refused for a while, in the ways that a broker in trouble has.
func TestABrokerThatRefusesWritesForAWhileIsWaitedOut(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*kerr.Error{kerr.KafkaStorageError, kerr.NotEnoughReplicas, kerr.InvalidTxnState,
		kerr.InvalidProducerEpoch} {
		t.Run(refusal.Message, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{embedded: true, noPostgres: true, yaml: quick, fake: smallShop(51)})
			s.fake.StartTraffic(30)
			p := s.spawn("run")
			p.isReady()
			var refused atomic.Int64
			s.broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				s.broker.KeepControl()
				if refused.Add(1) > 15 {
					return nil, nil, false
				}
				ask, answer := req.(*kmsg.ProduceRequest), req.ResponseKind().(*kmsg.ProduceResponse)
				for _, topic := range ask.Topics {
					said := kmsg.NewProduceResponseTopic()
					said.Topic, said.TopicID = topic.Topic, topic.TopicID
					for _, partition := range topic.Partitions {
						one := kmsg.NewProduceResponseTopicPartition()
						one.Partition, one.ErrorCode = partition.Partition, refusal.Code
						said.Partitions = append(said.Partitions, one)
					}
					answer.Topics = append(answer.Topics, said)
				}
				return answer, nil, true
			})
			eventually(t, "writes are refused", func() (bool, string) { return refused.Load() > 15, "" })
			s.changes(40)
			s.quiet()
			p.isReady()
		})
	}
}

// The registry is away when storestream starts, and later when a resource gets a new owner. A running owner
// goes on without it.
func TestARegistryThatIsAwayIsWaitedForAndSaid(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{embedded: true, noPostgres: true, yaml: quick, fake: smallShop(52)})
	var away atomic.Bool
	away.Store(true)
	s.schemas.Fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			http.Error(w, `{"error_code":50003,"message":"the store is away"}`, http.StatusServiceUnavailable)
		}
		return away.Load()
	})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	eventually(t, "not ready, because of the registry", func() (bool, string) {
		code, why := p.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(why, "registry"), why
	})
	away.Store(false)
	p.isReady()
	away.Store(true)
	rows := len(s.read(s.prefix + "shipments"))
	eventually(t, "what runs goes on", func() (bool, string) {
		return len(s.read(s.prefix+"shipments")) > rows,
			""
	})
	p.kill()
	p = s.spawn("run")
	eventually(t, "the successor waits", func() (bool, string) {
		code, why := p.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(why, "registry"), why
	})
	away.Store(false)
	p.isReady()
	s.quiet()
}

// A topic that somebody deletes while storestream runs is made and filled again.
func TestATopicThatIsDeletedWhileStorestreamRunsIsFilledAgain(t *testing.T) {
	t.Parallel()
	s := start(t, setup{embedded: true, noPostgres: true, yaml: quick, fake: smallShop(53)})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	if _, err := s.admin().DeleteTopics(context.Background(), s.prefix+"users"); err != nil {
		t.Fatal(err)
	}
	s.changes(100)
	s.quiet()
	p.isReady()
}

// Partitions that somebody adds to a data topic would put one key into two of them: the resource is blocked
// and says what to do, the others go on.
func TestPartitionsAddedToADataTopicHoldItsResourceAndAreExplained(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{embedded: true, noPostgres: true, yaml: quick, fake: smallShop(54)})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	if _, err := s.admin().CreatePartitions(context.Background(), 3, s.prefix+"products"); err != nil {
		t.Fatal(err)
	}
	p.kill()
	p = s.spawn("run")
	p.reports(s.prefix+"products", "partitions")
	s.changes(60)
	s.fake.StartTraffic(0)
	for _, resource := range without(storefake.Products) {
		s.becomes(resource, false)
	}
	if code, why := p.get("/readyz"); code != http.StatusServiceUnavailable ||
		!strings.Contains(why, "products") {
		t.Errorf("/readyz: %d %s", code, why)
	}
}

// The same while it runs: rows go into the partitions that their keys have always been in, or nowhere.
func TestPartitionsAddedWhileStorestreamWritesSplitNoKey(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{embedded: true, noPostgres: true, yaml: quick, fake: smallShop(55)})
	s.fake.StartTraffic(40)
	p := s.spawn("run")
	p.isReady()
	for _, topic := range []string{"shipments", "watermarks"} {
		if _, err := s.admin().CreatePartitions(context.Background(), 5, s.prefix+topic); err != nil {
			t.Fatal(err)
		}
	}
	p.reports(s.prefix+"shipments", "partitions")
	s.changes(100)
	s.fake.StartTraffic(0)
	for _, resource := range without(storefake.Shipments) {
		s.becomes(resource, false)
	}
	inOrder(t, storefake.Shipments, s.topic(storefake.Shipments))
}
