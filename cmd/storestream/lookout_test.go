package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap/zaptest"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// standby is an instance that polls nothing: it only looks.
func (s *stage) standby() *lookout {
	s.t.Helper()
	cfg, err := config.Load(config.Input{Set: []string{"kafka.brokers=" + s.broker.Brokers()[0], "registry.url=" + s.registry.URL}})
	if err != nil {
		s.t.Fatal(err)
	}
	in := &instance{cfg: cfg, set: s.set, metrics: metrics.New(prometheus.NewRegistry()), log: zaptest.NewLogger(s.t), cluster: s.cluster(), owners: map[string]*owner{}}
	for _, name := range cfg.Enabled() {
		in.owners[name] = newOwner(in, name)
	}
	in.lookout = newLookout(in)
	return in.lookout
}

// join makes another instance a member of the group, which owns what falls to it, until the returned function is called.
func (s *stage) join(instance string, resources ...string) (leave func()) {
	s.t.Helper()
	registry, err := registry.New(s.registry.URL, "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	cluster, err := producer.Open(producer.Config{Brokers: s.broker.Brokers(), TopicPrefix: "store.", Partitions: 2, Group: "storestream", Instance: instance,
		Registry: registry, AutoRegister: true, Log: zaptest.NewLogger(s.t)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cluster.Close)
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		left <- producer.NewGroup(cluster, resources, func(ctx context.Context, _ string) { <-ctx.Done() }).Run(ctx)
	}()
	leave = func() {
		if cancel(); left != nil {
			if err := <-left; err != nil {
				s.t.Error(err)
			}
			left = nil
		}
	}
	s.t.Cleanup(leave)
	return leave
}

// lag is what the metrics say of a resource; false: they say nothing.
func (l *lookout) lag(resource string) (time.Duration, bool) {
	start := l.in.owners[resource].metrics.Lag.Start()
	return time.Since(start), !start.IsZero()
}

func (l *lookout) shown(resource string) status.Resource {
	s := status.Snapshot{Resources: []status.Resource{l.in.owners[resource].snapshot(false)}}
	l.snapshot(&s)
	return s.Resources[0]
}

func hourOld(w *watermark.Watermark) {
	w.AsOf = schemas.InstantOf(time.Now().Add(-time.Hour))
	w.Settled = w.AsOf.Add(-time.Minute)
}

func TestALagIsToldByWhoeverHasTheResourceAndByEveryInstanceWhereNobodyHasIt(t *testing.T) {
	s := newStage(t)
	s.publish("orders", []schemas.Record{s.order(1, "Shipped")}, nil, hourOld)
	l := s.standby()
	eventually(t, "the watermark is read", func() bool { l.look(t.Context()); return len(l.marks) == 1 })
	l.tell()
	if lag, told := l.lag("orders"); !told || lag < time.Hour || lag > time.Hour+time.Minute {
		t.Errorf("nobody polls orders, whose last pass began an hour ago: lag %s, told: %v", lag, told)
	}
	if lag, told := l.lag("users"); !told || lag > time.Minute {
		t.Errorf("nobody has ever polled users: lag %s, told: %v, expected it from our start on", lag, told)
	}
	if got := testutil.ToFloat64(l.in.owners["orders"].metrics.Settled); got < 1e9 {
		t.Errorf("settled %v", got)
	}
	if r := l.shown("orders"); !r.Abandoned || r.Rows != 1 || r.Good.IsZero() || r.Settled.IsZero() {
		t.Errorf("%+v", r)
	}

	leave := s.join("elsewhere-1", schemas.Names()...)
	eventually(t, "another instance has orders", func() bool { l.look(t.Context()); return l.owners["orders"] == "elsewhere-1" })
	l.tell()
	if lag, told := l.lag("orders"); told {
		t.Errorf("another instance tells the lag, and yet we say %s: the larger of the two would be believed", lag)
	}
	if r := l.shown("orders"); r.Owner != "elsewhere-1" || r.Abandoned || !r.Good.IsZero() || r.Rows != 1 {
		t.Errorf("%+v", r)
	}

	leave()
	eventually(t, "nobody has orders", func() bool { l.look(t.Context()); return l.owners["orders"] == "" })
	l.tell()
	if lag, told := l.lag("orders"); !told || lag < time.Hour {
		t.Errorf("nobody polls orders any more: lag %s, told: %v", lag, told)
	}
}

func TestAnInstanceThatCannotAskTheGroupForAMinuteTellsTheLag(t *testing.T) {
	s := newStage(t)
	s.publish("orders", nil, nil, hourOld)
	s.join("elsewhere-1", schemas.Names()...)
	l := s.standby()
	eventually(t, "another instance has orders", func() bool { l.look(t.Context()); return l.owners["orders"] == "elsewhere-1" })
	l.now = func() time.Time { return time.Now().Add(50 * time.Second) }
	l.tell()
	if lag, told := l.lag("orders"); told {
		t.Errorf("lag %s: what the group said is still good", lag)
	}
	l.now = func() time.Time { return time.Now().Add(70 * time.Second) }
	l.tell() // as if every look had failed since
	if lag, told := l.lag("orders"); !told || lag < time.Hour {
		t.Errorf("lag %s, told: %v: nobody may be left who tells it", lag, told)
	}
}

// A poller that has ended, because its brokers are down or the group took the resource away, leaves its lag, which must go on and not begin anew.
func TestTheLagOfAPollerThatEndedGoesOn(t *testing.T) {
	s := newStage(t)
	s.publish("orders", nil, nil, hourOld)
	l := s.standby()
	last := time.Now().Add(-time.Minute) // cheap polls have come nearer than the last complete pass
	l.in.owners["orders"].metrics.Lag.Since(last)
	eventually(t, "the watermark is read", func() bool { l.look(t.Context()); return len(l.marks) == 1 })
	l.tell()
	if start := l.in.owners["orders"].metrics.Lag.Start(); !start.Equal(last) {
		t.Errorf("the lag is counted from %s, expected %s", start, last)
	}
}

// In the middle of a handover nobody has a resource, for seconds, and that is not what somebody is to be alarmed by.
func TestAResourceThatIsHandedOverIsNotCalledPolledByNobody(t *testing.T) {
	s := newStage(t)
	s.publish("orders", nil, nil, hourOld)
	l := s.standby()
	s.join("elsewhere-1", "users") // enables nothing else: orders have no owner, though there is an instance
	eventually(t, "another instance has users", func() bool { l.look(t.Context()); return l.owners["users"] != "" })
	if r := l.shown("orders"); r.Abandoned {
		t.Errorf("a moment ago: %+v", r)
	}
	l.now = func() time.Time { return time.Now().Add(time.Minute) }
	l.look(t.Context())
	if r := l.shown("orders"); !r.Abandoned || r.Owner != "" {
		t.Errorf("for a minute: %+v", r)
	}
}

// A takeover reads back what was published before it polls, which may take a minute. Totals that drop to nothing meanwhile would look like a loss.
func TestWhileAResourceIsTakenOverThePageShowsWhatTheTopicsSay(t *testing.T) {
	s := newStage(t)
	s.publish("orders", []schemas.Record{s.order(1, "Shipped"), s.order(2, "Shipped")}, nil, hourOld)
	session, err := producer.Take(t.Context(), s.cluster(), s.set.Get("orders"))
	if err != nil {
		t.Fatal(err)
	}
	letters := []watermark.DeadLetter{{Key: "orders/7", Row: []byte("{}"), Source: "rest", Field: "total_amount", Err: "expected a decimal"}}
	if err := session.Commit(t.Context(), watermark.Transaction{Watermark: session.Watermark(), DeadLetters: letters}); err != nil {
		t.Fatal(err)
	}
	session.Close()
	l := s.standby()
	eventually(t, "the watermark and the letter are read", func() bool { l.look(t.Context()); return len(l.marks) == 1 && len(l.letters["orders"]) == 1 })
	l.in.owners["orders"].show(nil, "reading back what was published", nil)
	snapshot := status.Snapshot{Resources: []status.Resource{l.in.owners["orders"].snapshot(true)}}
	l.snapshot(&snapshot)
	r := snapshot.Resources[0]
	if r.Rows != 2 || r.DeadLetters != 1 || r.Settled.IsZero() || r.AsOf.IsZero() || r.Good.IsZero() || r.Doing != "reading back what was published" {
		t.Errorf("%+v", r)
	}
}

func TestInstancesThatLackResourcesAreNamed(t *testing.T) {
	s := newStage(t)
	s.publish("orders", nil, nil, hourOld)
	s.join("elsewhere-1", schemas.Names()...)
	s.join("elsewhere-2", "orders", "users")
	l := s.standby()
	eventually(t, "both are members", func() bool { l.look(t.Context()); return len(l.members) == 2 })
	var shown status.Snapshot
	l.snapshot(&shown)
	if len(shown.Notices) != 1 || !strings.HasPrefix(shown.Notices[0], "Instance elsewhere-2 has not enabled order_items, products, shipments,") {
		t.Errorf("%q", shown.Notices)
	}
}

func TestTheReasonsOfDeadLettersAreShownWithoutTheirRows(t *testing.T) {
	s := newStage(t)
	session, err := producer.Take(t.Context(), s.cluster(), s.set.Get("users"))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tx := watermark.Transaction{Watermark: session.Watermark(), DeadLetters: []watermark.DeadLetter{{Key: "users/7", Row: []byte(`{"email":"ana@example.com"}`),
		Source: "rest", Field: "age", Err: "expected an integer"}}}
	if err := session.Commit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	l := s.standby()
	eventually(t, "the letter is read", func() bool { l.look(t.Context()); return len(l.letters["users"]) == 1 })
	l.tell()
	r := l.shown("users")
	if r.DeadLetters != 1 || len(r.Letters) != 1 || r.Letters[0].Field != "age" || r.Letters[0].Error != "expected an integer" || r.Letters[0].IDs[0] != "7" {
		t.Errorf("%+v", r)
	}
	if got := testutil.ToFloat64(l.in.owners["users"].metrics.LettersHeld); got != 1 {
		t.Errorf("%v dead letters are counted", got)
	}
}

func TestOnlyTheFirstLineOfAnErrorIsShown(t *testing.T) {
	if got := firstLine(errors.New("polling panicked: out of range\ngoroutine 7 [running]")); got != "polling panicked: out of range ... (the log has the rest)" {
		t.Error(got)
	}
	if got := firstLine(errors.New(strings.Repeat("ä", 1000))); len(got) > 640 || strings.Contains(got, "\ufffd") {
		t.Error(got)
	}
}
