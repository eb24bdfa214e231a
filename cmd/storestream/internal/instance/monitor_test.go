package instance

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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
	start := m.owners[resource].metrics.Lag.Start()
	return time.Since(start), !start.IsZero()
}

// shown is what the page says of a resource.
func (m *monitor) shown(resource string, owned bool) health.Resource {
	r := m.resource(resource, owned, false)
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
	m.setMetrics()
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour || lag > time.Hour+time.Minute {
		t.Errorf("nobody polls orders, whose last pass began an hour ago: lag %s, reported: %v", lag, reported)
	}
	if lag, reported := m.lag("users"); !reported || lag > time.Minute {
		t.Errorf("nobody has ever polled users: lag %s, reported: %v, expected it from our start on", lag, reported)
	}
	if got := testutil.ToFloat64(m.owners["orders"].metrics.Settled); got < 1e9 {
		t.Errorf("settled %v", got)
	}
	if r := m.shown("orders", false); r.State != health.Unowned || r.Rows != 1 || r.LagSeconds == nil ||
		r.Settled == nil || r.Settling.Days != nil {
		t.Errorf("%+v", r)
	}

	leave := s.Join("elsewhere-1", schemas.Names()...)
	m.until(t, "another instance has orders", func() bool {
		return m.ownership["orders"].Owner == "elsewhere-1"
	})
	m.setMetrics()
	if lag, reported := m.lag("orders"); reported {
		t.Errorf("both report the lag, and the larger, here %s, would be believed", lag)
	}
	r := m.shown("orders", false)
	if r.Owner != "elsewhere-1" || r.State != health.Behind || r.Rows != 1 {
		t.Errorf("%+v", r)
	}

	leave()
	m.until(t, "nobody has orders", func() bool { return m.ownership["orders"].Owner == "" })
	m.setMetrics()
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour {
		t.Errorf("nobody polls orders any more: lag %s, reported: %v", lag, reported)
	}
}

func TestAnInstanceThatCannotAskTheGroupForAMinuteReportsTheLag(t *testing.T) {
	s := stage.New(t)
	s.Publish("orders", nil, nil, hourOld)
	s.Join("elsewhere-1", schemas.Names()...)
	m := standby(t, s)
	m.until(t, "another instance has orders", func() bool {
		return m.ownership["orders"].Owner == "elsewhere-1"
	})
	m.now = func() time.Time { return time.Now().Add(50 * time.Second) }
	m.setMetrics()
	if lag, reported := m.lag("orders"); reported {
		t.Errorf("lag %s: what the group said is still good", lag)
	}
	m.now = func() time.Time { return time.Now().Add(70 * time.Second) }
	m.setMetrics() // as if every look had failed since
	if lag, reported := m.lag("orders"); !reported || lag < time.Hour {
		t.Errorf("lag %s, reported: %v: nobody may be left who reports it", lag, reported)
	}
}

// A poller that has ended, because its brokers are down or the group took the resource away, leaves its lag,
// which must go on and not begin anew.
func TestTheLagOfAPollerThatEndedGoesOn(t *testing.T) {
	s := stage.New(t)
	s.Publish("orders", nil, nil, hourOld)
	m := standby(t, s)
	last := time.Now().Add(-time.Minute) // cheap polls have come nearer than the last complete pass
	m.owners["orders"].metrics.Lag.Since(last)
	m.until(t, "the watermark is read", func() bool { return len(m.marks) == 1 })
	m.setMetrics()
	if start := m.owners["orders"].metrics.Lag.Start(); !start.Equal(last) {
		t.Errorf("the lag is counted from %s, expected %s", start, last)
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
		m.setMetrics()
	}
	stalled := func(resource string) bool {
		r := m.shown(resource, false)
		gauge := testutil.ToFloat64(m.owners[resource].metrics.Stalled) == 1
		if gauge != (r.State == health.Stalled) {
			t.Errorf("%s: the metric says %v, the page %s", resource, gauge, r.State)
		}
		return r.State == health.Stalled
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
	m.setMetrics()
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
		err     error
		blocked float64
	}{
		{&producer.RefusedError{}, 1},
		{&producer.RefusedError{MayPass: true}, 0},
		{nil, 0},
	} {
		orders.turn(nil, "waiting to take over again", step.err)
		m.setMetrics()
		if got := testutil.ToFloat64(orders.metrics.Blocked); got != step.blocked {
			t.Errorf("%v: blocked %v", step.err, got)
		}
		if r := m.shown("orders", true); (r.State == health.Blocked) != (step.blocked == 1) {
			t.Errorf("%v: the page says %s", step.err, r.State)
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
		r.State != health.TakingOver || r.Doing != "reading back what was published" {
		t.Errorf("%+v", r)
	}
	m.setMetrics()
	metrics := m.owners["orders"].metrics
	swept, every := testutil.ToFloat64(metrics.Swept), testutil.ToFloat64(metrics.SweepInterval)
	if got := time.Since(time.Unix(int64(swept), 0)); got < 2*time.Hour || got > 3*time.Hour {
		t.Errorf("swept %s ago", got)
	}
	if every != s.Config().Sweep.Interval.Seconds() || every == 0 {
		t.Errorf("swept every %v s", every)
	}
	if got := testutil.ToFloat64(metrics.SweepLeft); got != 1 {
		t.Errorf("that the last sweep left something reads %v", got)
	}
	if got := testutil.ToFloat64(metrics.SweepFound("extra")); got != 400 {
		t.Errorf("what the last sweep found reads %v", got)
	}
	interval := s.Config().Resources["orders"].Interval.Seconds()
	if got := testutil.ToFloat64(metrics.PollInterval); got != interval {
		t.Errorf("polled every %v s, expected %v", got, interval)
	}
	for _, name := range []string{"orders", "users"} { // users have no watermark yet: nothing is known of them
		if got := testutil.ToFloat64(m.owners[name].metrics.FirstLoad); got != 0 {
			t.Errorf("%s: that the first load is not finished reads %v", name, got)
		}
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.AsOf = schemas.MinInstant })
	m.until(t, "the watermark of a first load is read", func() bool {
		return m.marks["orders"].AsOf == schemas.MinInstant
	})
	m.setMetrics()
	if got := testutil.ToFloat64(metrics.FirstLoad); got != 1 {
		t.Errorf("that the first load is not finished reads %v", got)
	}
}

func TestTheReasonsOfDeadLettersAreShownWithoutTheirRows(t *testing.T) {
	s := stage.New(t)
	tx := watermark.Transaction{DeadLetters: []watermark.DeadLetter{{Key: "users/7", Source: "rest",
		Row: []byte(`{"email":"ana@example.com"}`), Field: "age", Err: "expected an integer"}}}
	s.Commit("users", tx, nil)
	m := standby(t, s)
	m.until(t, "the letter is read", func() bool { return len(m.deadLetters["users"]) == 1 })
	m.setMetrics()
	r := m.shown("users", false)
	if len(r.DeadLetters) != 1 {
		t.Fatalf("%+v", r)
	}
	l := r.DeadLetters[0]
	if l.Field != "age" || l.Error != "expected an integer" || l.IDs[0] != "7" || l.Rows != 1 {
		t.Errorf("%+v", l)
	}
	if got := testutil.ToFloat64(m.owners["users"].metrics.LettersInTopic); got != 1 {
		t.Errorf("%v dead letters are counted", got)
	}
}
