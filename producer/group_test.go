package producer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
)

var all = []string{"orders", "order_items", "products", "users", "shipments"}

// ledger notes who owns what, as the owners themselves say it.
type ledger struct {
	t       *testing.T
	mu      sync.Mutex
	owners  map[string][]string // resource to instances
	causes  map[string]error    // instance/resource to why it ended
	changed chan struct{}
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	return &ledger{t: t, owners: make(map[string][]string), causes: make(map[string]error),
		changed: make(chan struct{})}
}

// own is an owner that does nothing until its context ends.
func (l *ledger) own(instance string) func(context.Context, string) {
	return func(ctx context.Context, resource string) {
		l.note(func() { l.owners[resource] = append(l.owners[resource], instance) })
		<-ctx.Done()
		l.note(func() {
			l.owners[resource] = slices.DeleteFunc(l.owners[resource], func(i string) bool { return i == instance })
			l.causes[instance+"/"+resource] = context.Cause(ctx)
		})
	}
}

func (l *ledger) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	for resource, owners := range l.owners {
		if len(owners) > 1 {
			l.t.Errorf("%s is owned by %v at once", resource, owners)
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until check holds.
func (l *ledger) await(what string, check func() bool) {
	l.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		ok, changed := check(), l.changed
		l.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			l.t.Fatalf("waited 30s for %s: owners are %v", what, l.owners)
		}
	}
}

// everythingOwned: each resource has one owner, and the instances share them in some way.
func (l *ledger) everythingOwned(by ...string) func() bool {
	return func() bool {
		found := make(map[string]bool)
		for _, resource := range all {
			if len(l.owners[resource]) != 1 {
				return false
			}
			found[l.owners[resource][0]] = true
		}
		return slices.Equal(slices.Sorted(maps.Keys(found)), by)
	}
}

// errStops is the cause with which a member stops.
var errStops = errors.New("the instance stops")

// run runs a member until the returned function is called or the test ends.
func (l *ledger) run(c *producer.Cluster, instance string) (m *producer.Group, leave func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	m = producer.NewGroup(c, all, time.Minute, l.own(instance))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	leave = sync.OnceFunc(func() {
		cancel(errStops)
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(leave)
	return m, leave
}

// While a group shares its resources out a broker answers without its members. Taken for an empty group, that
// would say that nobody polls anything.
func TestAGroupThatIsSharingItsResourcesOutIsNotCalledEmpty(t *testing.T) {
	s, l := plainStage(t), newLedger(t)
	a, b := s.cluster("a", nil), s.cluster("b", nil)
	l.run(a, "a")
	l.await("a alone", l.everythingOwned("a"))
	eventually := func(what string, is func([]health.Member, error) bool) {
		t.Helper()
		for ctx := s.ctx(); ; {
			owners, err := producer.Members(ctx, b)
			if is(owners, err) {
				return
			}
			if errors.Is(err, producer.ErrSharing) {
				continue
			}
			if err != nil || len(owners) == 0 {
				t.Fatalf("before %s: %v, %v", what, owners, err)
			}
		}
	}
	eventually("a has all", func(owners []health.Member, _ error) bool {
		return len(owners) == 1 && len(owners[0].Owned) == len(all)
	})
	l.run(b, "b")
	eventually("b comes", func(_ []health.Member, err error) bool {
		return errors.Is(err, producer.ErrSharing)
	})
	eventually("both have some", func(owners []health.Member, _ error) bool {
		return len(owners) == 2 && len(owners[0].Owned) > 0 && len(owners[1].Owned) > 0
	})
}

func TestInstancesShareTheResourcesAndHandThemOn(t *testing.T) {
	s, l := plainStage(t), newLedger(t)
	a, b := s.cluster("a", nil), s.cluster("b", nil)
	memberA, leaveA := l.run(a, "a")
	l.await("a alone", l.everythingOwned("a"))
	memberB, _ := l.run(b, "b")
	l.await("a and b", l.everythingOwned("a", "b"))
	for _, m := range []*producer.Group{memberA, memberB} {
		if err := m.Confirm(s.ctx()); err != nil {
			t.Error(err)
		}
	}
	owners, err := producer.Members(s.ctx(), b)
	if err != nil {
		t.Fatal(err)
	}
	reported := make(map[string][]string)
	for _, o := range owners {
		reported[o.Instance] = sorted(o.Owned)
		if len(o.Enabled) != len(all) {
			t.Errorf("%s says that %v are enabled there", o.Instance, o.Enabled)
		}
	}
	if !slices.Equal(reported["a"], sorted(memberA.Owned())) ||
		!slices.Equal(reported["b"], sorted(memberB.Owned())) {
		t.Errorf("the group says %v, the members %v and %v", reported, memberA.Owned(), memberB.Owned())
	}
	leaveA()
	l.await("b alone", l.everythingOwned("b"))
	for what, cause := range l.causes {
		if stays := strings.HasPrefix(what, "a/") && errors.Is(cause, errStops); !stays &&
			!errors.Is(cause, producer.ErrRevoked) {
			t.Errorf("%s ended because of %v, expected ErrRevoked or its own stop", what, cause)
		}
	}
	if err := memberA.Confirm(canceled()); err == nil {
		t.Error("a member that has left was confirmed")
	}
}

// A resource is handed on when its owner has returned, not when its context ended.
func TestTheGroupWaitsForAnOwnerToStop(t *testing.T) {
	t.Parallel()
	s, l := newStage(t), newLedger(t)
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	stopping, finish := make(chan struct{}, len(all)), make(chan struct{})
	own := l.own("a")
	m := producer.NewGroup(s.cluster("a", nil), all, time.Minute, func(ctx context.Context, resource string) {
		busy, end := context.WithCancelCause(context.Background())
		go func() {
			<-ctx.Done()
			stopping <- struct{}{}
			<-finish
			end(context.Cause(ctx))
		}()
		own(busy, resource)
	})
	go func() { done <- m.Run(ctx) }()
	l.await("a alone", l.everythingOwned("a"))
	l.run(s.cluster("b", nil), "b")
	<-stopping
	// The group has time to go on without a: l fails the test if b starts before a has ended.
	beats := s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: "storestream",
		Observe: true, Count: -1})
	if err := beats.Wait(s.ctx(), 6); err != nil {
		t.Fatal(err)
	}
	close(finish)
	l.await("a and b", l.everythingOwned("a", "b"))
	leave()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An owner that stops with its instance finishes as a member: no other begins before it has ended.
func TestAMemberThatStopsLetsItsOwnersFinishBeforeItLeaves(t *testing.T) {
	t.Parallel()
	s, l := newStage(t), newLedger(t)
	ctx, stop := context.WithCancelCause(context.Background())
	stopping, finish := make(chan error, len(all)), make(chan struct{})
	own := l.own("a")
	m := producer.NewGroup(s.cluster("a", nil), all, time.Minute, func(ctx context.Context, resource string) {
		busy, end := context.WithCancelCause(context.Background())
		go func() {
			<-ctx.Done()
			stopping <- context.Cause(ctx)
			<-finish
			end(context.Cause(ctx))
		}()
		own(busy, resource)
	})
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	l.await("a alone", l.everythingOwned("a"))
	stop(errStops)
	for range all {
		if cause := <-stopping; !errors.Is(cause, errStops) {
			t.Errorf("an owner is stopped because of %v, expected %v", cause, errStops)
		}
	}
	beats := s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: "storestream",
		Observe: true, Count: -1})
	if err := beats.Wait(s.ctx(), 3); err != nil {
		t.Fatal(err)
	}
	if err := m.Confirm(s.ctx()); err != nil {
		t.Errorf("a member whose owners finish: %v", err)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An owner that does not finish does not keep its instance a member for ever.
func TestAMemberThatStopsWaitsForItsOwnersNoLongerThanTheyMayTake(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, stop := context.WithCancelCause(context.Background())
	begun, finish := make(chan struct{}, len(all)), make(chan struct{})
	m := producer.NewGroup(s.cluster("a", nil), all, time.Millisecond, func(context.Context, string) {
		begun <- struct{}{}
		<-finish
	})
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	for range all {
		<-begun
	}
	left := s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.LeaveGroup}, Group: "storestream", Observe: true})
	stop(errStops)
	if err := left.Wait(s.ctx(), 1); err != nil {
		t.Errorf("the member does not leave: %v", err)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An instance that the group has dropped finds out, and is not confirmed.
func TestAMemberThatTheGroupHasDroppedLosesItsResources(t *testing.T) {
	s, l := newStage(t), newLedger(t)
	m, _ := l.run(s.cluster("a", nil), "a")
	l.await("a alone", l.everythingOwned("a"))
	dropped := s.broker.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: "storestream", TopLevel: true,
			Err: kerr.UnknownMemberID, Count: -1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true,
			Err: kerr.CoordinatorLoadInProgress, Count: -1})
	ctx, cancel := context.WithCancel(context.Background())
	confirmed := make(chan error, 1)
	go func() { confirmed <- m.Confirm(ctx) }()
	l.await("the loss of everything", func() bool { return len(l.causes) == len(all) })
	for what, cause := range l.causes {
		if !errors.Is(cause, producer.ErrRevoked) {
			t.Errorf("%s ended because of %v, expected ErrRevoked", what, cause)
		}
	}
	cancel()
	if err := <-confirmed; err == nil {
		t.Error("a member that was dropped was confirmed")
	}
	says := func(what string) {
		t.Helper()
		ask := time.NewTicker(10 * time.Millisecond)
		for ctx := s.ctx(); ctx.Err() == nil; <-ask.C {
			if said := m.Waiting(); said == "" && what == "" || what != "" && strings.Contains(said, what) {
				return
			}
		}
		t.Errorf("it waits for %q, expected %q", m.Waiting(), what)
	}
	says(kerr.UnknownMemberID.Message)
	dropped.Remove()
	l.await("a back", l.everythingOwned("a"))
	says("")
}

func TestAMemberWaitsForABrokerThatIsDown(t *testing.T) {
	ports, err := servers.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	port := ports[0]
	s, l := plainStage(t), newLedger(t)
	waiting := make(chan struct{}, 1)
	c := s.cluster("early", func(c *producer.Config) {
		c.Brokers = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
		c.Log = zaptest.NewLogger(t, zaptest.WrapOptions(zap.Hooks(func(e zapcore.Entry) error {
			if e.Message == "waiting for kafka" {
				waiting <- struct{}{}
			}
			return nil
		})))
	})
	_, leave := l.run(c, "a")
	<-waiting
	servers.BrokerForTest(t, servers.BrokerConfig{Ports: []int{port}})
	l.await("a alone", l.everythingOwned("a"))
	leave()
}

// The resources stand as partitions of the watermark topic in the group, whether it has these or not. So none
// falls to an instance with others, because their names hash alike.
func TestTheResourcesAreSharedEvenlyHoweverFewPartitionsTheWatermarkTopicHas(t *testing.T) {
	t.Parallel()
	s, l := plainStage(t), newLedger(t)
	compact, stamped := "compact", "CreateTime"
	if _, err := s.admin.CreateTopic(s.ctx(), 1, 1, map[string]*string{"cleanup.policy": &compact,
		"message.timestamp.type": &stamped}, "store.watermarks"); err != nil {
		t.Fatal(err)
	}
	a, leave := l.run(s.cluster("a", nil), "a")
	l.await("a alone", l.everythingOwned("a"))
	b, _ := l.run(s.cluster("b", nil), "b")
	l.await("a and b", l.everythingOwned("a", "b"))
	if of := []int{len(a.Owned()), len(b.Owned())}; min(of[0], of[1]) != 2 {
		t.Errorf("a and b have %v resources, expected two and three", of)
	}
	// A person deletes the topic, and an owner makes it again within a minute. The instances run on meanwhile.
	if _, err := s.admin.DeleteTopics(s.ctx(), "store.watermarks"); err != nil {
		t.Fatal(err)
	}
	leave()
	l.await("b alone", l.everythingOwned("b"))
	if members, err := producer.Members(s.ctx(), s.cluster("c", nil)); err != nil || len(members) != 1 ||
		len(members[0].Owned) != len(all) {
		t.Errorf("members %+v, %v", members, err)
	}
}

// The Java client's own vectors.
func TestKeysArePartitionedAsByTheJavaClient(t *testing.T) {
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482,
		"a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107} {
		if got, want := producer.PartitionOf(key, 1000), (hash&0x7fffffff)%1000; got != want {
			t.Errorf("%q goes to partition %d, expected %d", key, got, want)
		}
	}
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
		s.order(2, "2026-11-20T09:00:00Z", "Shipped"), s.order(77, "2026-11-20T09:00:00Z", "Shipped")))
	for _, r := range s.committed("store.orders") {
		if want := producer.PartitionOf(string(r.Key), 3); r.Partition != want {
			t.Errorf("a record stands in partition %d, expected %d", r.Partition, want)
		}
	}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

func canceled() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("the test asked once"))
	return ctx
}

// A controller does not count a broker that is only starting, so no topic can be created. That is no reason
// to leave.
func TestABrokerThatIsStartingIsWaitedFor(t *testing.T) {
	s := newStage(t)
	var refusals atomic.Int32
	s.broker.ControlKey(int16(kmsg.CreateTopics), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		if refusals.Add(1) > 2 {
			return nil, nil, false
		}
		req := kreq.(*kmsg.CreateTopicsRequest)
		answer := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, asked := range req.Topics {
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ErrorCode = asked.Topic, kerr.InvalidReplicationFactor.Code
			topic.ErrorMessage = kmsg.StringPtr("All brokers are currently fenced")
			answer.Topics = append(answer.Topics, topic)
		}
		return answer, nil, true
	})
	l := newLedger(t)
	l.run(s.cluster("a", nil), "a")
	l.await("everything owned", l.everythingOwned("a"))
	if refusals.Load() < 3 {
		t.Errorf("%d topics were asked for, expected two refusals and then more", refusals.Load())
	}
}

// Brokers have bounds for the time after which a member without a sign of life is out.
func TestASessionTimeoutThatTheBrokersRefuseIsSaid(t *testing.T) {
	s, l := plainStage(t), newLedger(t)
	m, _ := l.run(s.cluster("a", func(c *producer.Config) { c.SessionTimeout = 2 * time.Second }), "a")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := s.ctx(); !strings.Contains(m.Waiting(), "kafka.session_timeout"); <-tick.C {
		if ctx.Err() != nil {
			t.Fatalf("it waits for %q", m.Waiting())
		}
	}
}
