package instance

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// standby is the monitor of an instance that polls nothing: it does not join the group.
func standby(t *testing.T, s *stage.Stage) *monitor {
	t.Helper()
	const name = "here-1"
	in, err := newInstance(Config{Name: name, Settings: s.Config(), Schemas: s.Schemas, Cluster: s.Cluster(name),
		Metrics: metrics.New(prometheus.NewRegistry()), Board: status.New(name, "test"), Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.sources.Close)
	return in.monitor
}

// lag is what the metrics say of a resource; false: they say nothing.
func (m *monitor) lag(resource string) (time.Duration, bool) {
	since := m.shown(resource, false).LagSince
	if since == nil {
		return 0, false
	}
	return time.Since(since.Time()), true
}

// shown is what the page says of a resource.
func (m *monitor) shown(resource string, owned bool) health.Resource {
	r := m.resource(resource, owned)
	r.Judge()
	return r
}

// until looks until f says true.
func (m *monitor) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	stage.Eventually(t, what, func() bool { m.look(t.Context()); return f() })
}

func hourOld(w *watermark.Watermark) {
	w.AsOf = schemas.InstantOf(time.Now().Add(-time.Hour))
	w.Settled, w.LastSweep = w.AsOf.Add(-time.Minute), w.AsOf.Add(-time.Hour)
	w.Swept = &watermark.Swept{Request: -1, Extra: 400, Left: "the service does not have 400 of 500 rows"}
}

func TestTheLagIsReportedByTheOwnerOrByEveryInstanceWhereThereIsNone(t *testing.T) {
	s := stage.New(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, hourOld)
	m := standby(t, s)
	m.until(t, "the watermark is read", func() bool { return len(m.marks) == 1 })
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour || lag > time.Hour+time.Minute {
		t.Errorf("nobody polls orders, whose last pass began an hour ago: lag %s, reported: %v", lag, reported)
	}
	if lag, reported := m.lag("users"); !reported || lag > time.Minute {
		t.Errorf("nobody has ever polled users: lag %s, reported: %v, expected it from our start on", lag, reported)
	}
	if r := m.shown("orders", false); r.State != health.Unowned || r.Rows != 1 || r.LagSeconds == nil ||
		r.Settled == nil || r.Settling.Days != nil {
		t.Errorf("%+v", r)
	}

	leave := s.Join("elsewhere-1", schemas.Names()...)
	m.until(t, "another instance has orders", func() bool {
		return m.ownership["orders"].Owner == "elsewhere-1"
	})
	if lag, reported := m.lag("orders"); reported {
		t.Errorf("both report the lag, and the larger, here %s, would be believed", lag)
	}
	r := m.shown("orders", false)
	if r.Owner != "elsewhere-1" || r.State != health.Behind || r.Rows != 1 {
		t.Errorf("%+v", r)
	}

	leave()
	m.until(t, "nobody has orders", func() bool { return m.ownership["orders"].Owner == "" })
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour {
		t.Errorf("nobody polls orders any more: lag %s, reported: %v", lag, reported)
	}
}

// besideAnOwner is a standby beside another instance that has orders, whose lag is an hour.
func besideAnOwner(t *testing.T) (*stage.Stage, *monitor) {
	t.Helper()
	s := stage.New(t)
	s.Publish("orders", nil, nil, hourOld)
	s.Join("elsewhere-1", schemas.Names()...)
	m := standby(t, s)
	m.until(t, "another instance has orders", func() bool {
		return m.ownership["orders"].Owner == "elsewhere-1"
	})
	return s, m
}

func TestAnInstanceThatCannotAskTheGroupForAMinuteReportsTheLag(t *testing.T) {
	_, m := besideAnOwner(t)
	m.now = func() time.Time { return time.Now().Add(50 * time.Second) }
	if lag, reported := m.lag("orders"); reported {
		t.Errorf("lag %s: what the group said is still good", lag)
	}
	m.now = func() time.Time { return time.Now().Add(70 * time.Second) }
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour {
		t.Errorf("lag %s, reported: %v: nobody may be left who reports it", lag, reported)
	}
}

// The topics go on to say how fresh the resource is that another instance polls.
func TestTheLagIsThatOfTheTopicsWhileTheGroupDoesNotAnswer(t *testing.T) {
	s, m := besideAnOwner(t)
	s.Broker.ControlKey(int16(kmsg.DescribeGroups), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		s.Broker.KeepControl()
		answer := asked.ResponseKind().(*kmsg.DescribeGroupsResponse)
		group := kmsg.NewDescribeGroupsResponseGroup()
		group.Group = asked.(*kmsg.DescribeGroupsRequest).Groups[0]
		group.ErrorCode = kerr.GroupAuthorizationFailed.Code
		answer.Groups = append(answer.Groups, group)
		return answer, nil, true
	})
	now := time.Now().Add(5 * time.Minute)
	m.now = func() time.Time { return now }
	last := schemas.InstantOf(now.Add(-time.Second))
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.FreshAsOf = last })
	m.until(t, "the watermark is read", func() bool { return m.marks["orders"].FreshAsOf == last })
	if m.err == nil {
		t.Error("the group answers")
	}
	if r := m.shown("orders", false); r.LagSince == nil || *r.LagSince != last || r.LagSeconds == nil {
		t.Errorf("the lag is counted from %v, expected %s; the page says %v", r.LagSince, last, r.LagSeconds)
	}
}

// Cheap polls come nearer than the last complete pass. An owner that has ended leaves that in the watermark.
func TestTheLagOfAPollerThatEndedGoesOn(t *testing.T) {
	s := stage.New(t)
	last := schemas.InstantOf(time.Now().Add(-time.Minute))
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { hourOld(w); w.FreshAsOf = last })
	m := standby(t, s)
	m.until(t, "the watermark is read", func() bool { return len(m.marks) == 1 })
	if since := m.shown("orders", false).LagSince; since == nil || *since != last {
		t.Errorf("the lag is counted from %v, expected %s", since, last)
	}
}

// The group may give a resource to an instance that is dead, and never notice. That one's neighbours do.
func TestAResourceWhoseOwnerLeavesTheWatermarkAloneIsCalledStalledByEveryInstance(t *testing.T) {
	s := stage.New(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, hourOld)
	s.Join("dead-1", schemas.Names()...)
	m := standby(t, s)
	core, logged := observer.New(zap.InfoLevel)
	m.owners["orders"].log = zap.New(core)
	m.until(t, "the watermark is read, and another instance has orders", func() bool {
		return len(m.marks) == 1 && m.ownership["orders"].Owner == "dead-1"
	})
	now := time.Now()
	m.now = func() time.Time { return now }
	pass := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(monitorEvery)
			m.look(t.Context())
		}
	}
	stalled := func(resource string) bool {
		return m.shown(resource, false).State == health.Stalled
	}

	pass(2*time.Minute - monitorEvery)
	if _, reported := m.lag("orders"); stalled("orders") || reported || logged.Len() > 0 {
		t.Error("a living owner may take that long")
	}
	pass(2 * monitorEvery)
	if !stalled("orders") || !stalled("users") {
		t.Error("it is not said that the owner does nothing")
	}
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour {
		t.Errorf("lag %s, reported: %v: nobody else may be left who reports it", lag, reported)
	}
	r := m.shown("orders", false)
	if r.Owner != "dead-1" || r.Written == nil || r.LagSeconds == nil || r.Rows != 1 {
		t.Errorf("%+v", r)
	}
	pass(time.Minute)
	if all := logged.TakeAll(); len(all) != 1 || all[0].Level != zap.WarnLevel ||
		all[0].ContextMap()["owner"] != "dead-1" {
		t.Errorf("logged %+v, expected it once", all)
	}

	s.Publish("orders", nil, nil, nil)
	m.until(t, "it is written", func() bool { return logged.Len() > 0 })
	if _, reported := m.lag("orders"); stalled("orders") || reported {
		t.Error("the owner writes again")
	}
	if all := logged.TakeAll(); len(all) != 1 || all[0].Level != zap.InfoLevel {
		t.Errorf("logged %+v, expected its end", all)
	}
}

func TestWhatAnotherInstanceHoldsIsShown(t *testing.T) {
	s := stage.New(t)
	since := schemas.InstantOf(time.Now().Add(-time.Hour))
	block := func(why string, publishes, leavesOut bool) func(*watermark.Watermark) {
		return func(w *watermark.Watermark) {
			hourOld(w)
			w.Trouble = &watermark.Trouble{Why: why, Since: since, Publishes: publishes, LeavesOut: leavesOut}
		}
	}
	s.Publish("orders", nil, nil, block("poll.memory is full", false, false))
	s.Publish("users", nil, nil, block("a day cannot be closed", true, false))
	s.Publish("products", nil, nil, block("a page is bad", true, true))
	s.Join("elsewhere-1", schemas.Names()...)
	m := standby(t, s)
	m.until(t, "another instance has them", func() bool {
		return len(m.marks) == 3 && m.ownership["users"].Owner != "" && m.ownership["orders"].Owner != ""
	})
	for name, want := range map[string]health.State{"orders": health.Blocked, "products": health.Blocked,
		"users": health.SettlingDelayed} {
		r := m.shown(name, false)
		if name == "users" { // or it would be behind by its hour
			now := schemas.InstantOf(time.Now())
			r.Good = &now
			r.Judge()
		}
		if r.State != want || r.Why != m.marks[name].Trouble.Why || !r.Since.Equal(since.Time()) {
			t.Errorf("%s: %s since %s: %s", name, r.State, r.Since, r.Why)
		}
	}
}

func TestATakeoverThatAPersonMustLetThroughIsBlocked(t *testing.T) {
	s := stage.New(t)
	m := standby(t, s)
	m.look(t.Context())
	m.now = func() time.Time { return time.Now().Add(2 * time.Minute) } // it has not just begun
	orders := m.owners["orders"]
	for _, step := range []struct {
		err   error
		state health.State
	}{
		{&producer.RefusedError{}, health.Blocked},
		{&producer.RefusedError{MayPass: true}, health.Failing},
		{nil, health.Resuming},
	} {
		orders.turn(nil, "waiting to take over again", step.err)
		if r := m.shown("orders", true); r.State != step.state {
			t.Errorf("%v: %s", step.err, r.State)
		}
	}
}

// In the middle of a handover nobody has a resource, for seconds, and that is not what somebody is to be
// alarmed by.
func TestAResourceThatIsHandedOverIsNotCalledAbandoned(t *testing.T) {
	s := stage.New(t)
	s.Publish("orders", nil, nil, hourOld)
	m := standby(t, s)
	s.Join("elsewhere-1", "users") // enables nothing else: orders have no owner, though there is an instance
	m.until(t, "another instance has users", func() bool { return m.ownership["users"].Owner != "" })
	if r := m.shown("orders", false); r.State == health.Unowned {
		t.Errorf("a moment ago: %+v", r)
	}
	m.now = func() time.Time { return time.Now().Add(time.Minute) }
	m.look(t.Context())
	if r := m.shown("orders", false); r.State != health.Unowned || r.Owner != "" {
		t.Errorf("for a minute: %+v", r)
	}
}

// A takeover reads back what was published before it polls, which may take a minute. Totals that drop to
// nothing meanwhile would look like a loss.
func TestWhileAResourceIsTakenOverThePageShowsWhatTheTopicsSay(t *testing.T) {
	s := stage.New(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Shipped")}, nil, hourOld)
	tx := watermark.Transaction{DeadLetters: []watermark.DeadLetter{
		{Key: "orders/7", Row: []byte("{}"), Source: "rest", Field: "total_amount", Err: "expected a decimal"}}}
	s.Commit("orders", tx, nil)
	m := standby(t, s)
	m.until(t, "the watermark and the dead letter are read", func() bool {
		return len(m.marks) == 1 && len(m.deadLetters["orders"]) == 1
	})
	m.owners["orders"].turn(nil, "reading back what was published", nil)
	r := m.shown("orders", true)
	if r.Rows != 2 || len(r.DeadLetters) != 1 || r.Settled == nil || r.AsOf == nil ||
		r.State != health.Resuming || r.Doing != "reading back what was published" {
		t.Errorf("%+v", r)
	}
	if got := testutil.ToFloat64(m.owners["orders"].metrics.SweepInterval); got == 0 ||
		got != s.Config().Sweep.Interval.Seconds() {
		t.Errorf("swept every %v s", got)
	}
	if interval := s.Config().Resources["orders"].Interval.Seconds(); r.IntervalSeconds != interval {
		t.Errorf("polled every %v s, expected %v", r.IntervalSeconds, interval)
	}
}

func TestTheReasonsOfDeadLettersAreShownWithoutTheirRows(t *testing.T) {
	s := stage.New(t)
	tx := watermark.Transaction{DeadLetters: []watermark.DeadLetter{{Key: "users/7", Source: "rest",
		Row: []byte(`{"email":"ana@example.com"}`), Field: "age", Err: "expected an integer"}}}
	s.Commit("users", tx, nil)
	m := standby(t, s)
	m.until(t, "the letter is read", func() bool { return len(m.deadLetters["users"]) == 1 })
	r := m.shown("users", false)
	if len(r.DeadLetters) != 1 {
		t.Fatalf("%+v", r)
	}
	l := r.DeadLetters[0]
	if l.Field != "age" || l.Error != "expected an integer" || l.IDs[0] != "7" || l.Rows != 1 {
		t.Errorf("%+v", l)
	}
}
