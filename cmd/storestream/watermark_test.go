package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func TestWatermarkListShowsWhatIsPublishedAndWhatIsAskedFor(t *testing.T) {
	s := newStage(t)
	s.do("watermark", "list").expect(t, exitDone, "RESOURCE", "orders", "shipments", "none") // before anything has ever run

	settled := instant(t, "2026-11-20T09:28:00.000123Z")
	asOf := schemas.InstantOf(time.Now().Add(-time.Hour))
	s.publish("orders", []schemas.Record{s.order(1, "Shipped"), s.order(2, "Complete")}, nil, func(w *watermark.Watermark) {
		w.Settled, w.AsOf = settled, asOf
	})
	(&call{args: append([]string{"watermark", "reset", "orders", "--to", "2026-11-19"}, s.flags...), app: app{terminal: true}, answer: "yes\n"}).
		run(t.Context()).expect(t, exitDone, "Publish these again? [y/N]", "2026-11-20T09:28:00Z", "1d9h", "orders: request 0: replay from 2026-11-19T00:00:00.000000Z")

	s.do("watermark", "list").expect(t, exitDone, "2026-11-20T09:28:00Z", "1h0m", "waits: reset to 2026-11-19T00:00:00Z by "+whoAmI())

	c := s.do("watermark", "list", "-o", "json").expect(t, exitDone)
	var states []state
	if err := json.Unmarshal([]byte(c.stdout.String()), &states); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	if len(states) != 5 || states[0].Resource != "orders" || states[1].Resource != "order_items" {
		t.Fatalf("%d resources, expected all five in order:\n%s", len(states), c.stdout)
	}
	orders, items := states[0], states[1]
	if orders.Rows != 2 || *orders.Settled != settled || *orders.LagSeconds < 3599 || len(orders.Pending) != 1 || orders.Pending[0].Kind != watermark.Reset {
		t.Errorf("orders: %+v", orders)
	}
	if items.Settled != nil || items.LagSeconds != nil || items.Rows != 0 {
		t.Errorf("order_items have never run, and are shown as %+v", items)
	}
	if !strings.Contains(c.stdout.String(), `"settled": "2026-11-20T09:28:00.000123Z"`) {
		t.Errorf("settled must keep its microseconds:\n%s", c.stdout)
	}
}

// Whoever looks at three in the morning wants one answer first.
func TestWatermarkListSaysWhetherEverythingIsUpToDate(t *testing.T) {
	s := newStage(t)
	s.do("watermark", "list").expect(t, exitDone, "NOT up to date.\n  orders, order_items, products, users, shipments: nothing is published yet, and no instance polls it\n")
	mark := func(name string, asOf time.Duration) state {
		w := watermark.New(name)
		now := schemas.InstantOf(time.Now())
		w.AsOf, w.Settled, w.Written = now.Add(-asOf), now.Add(-asOf-time.Minute), now
		st := stateOf(w, nil, now)
		st.Owner = "shop-1"
		return st
	}
	cfg := config.Default()
	fresh, old, gone, first := mark("orders", 3*time.Second), mark("users", time.Hour), mark("products", 10*time.Minute), mark("shipments", time.Second)
	gone.Owner, first.LagSeconds, first.AsOf = "", nil, nil
	for _, test := range []struct {
		states []state
		says   []string
	}{
		{[]state{fresh}, []string{"Everything is up to date: the largest lag is 3.0s (orders)."}},
		{[]state{fresh, old}, []string{"NOT up to date.\n  users: the last complete pass began 1h0m ago\n"}},
		{[]state{gone, first}, []string{"products: no instance polls it, since 10m0s", "shipments: the first load is not finished"}},
	} {
		verdict := (&app{}).verdict(&cfg, test.states)
		for _, say := range test.says {
			if !strings.Contains(verdict, say) {
				t.Errorf("%q does not say %q", verdict, say)
			}
		}
	}
}

func TestWatermarkListShowsTheLastSweepAndWhatCannotBePublished(t *testing.T) {
	s := newStage(t)
	s.publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.LastSweep = schemas.InstantOf(time.Now().Add(-2 * time.Hour))
		w.Swept = &watermark.Swept{Missing: 1, Stale: 2}
	})
	ctx := t.Context()
	session, err := producer.Take(ctx, s.cluster(), s.set.Get("orders"))
	if err != nil {
		t.Fatal(err)
	}
	tx := watermark.Transaction{Watermark: session.Watermark(), DeadLetters: []watermark.DeadLetter{
		{Key: "orders/7", Row: []byte(`{"id":7,"total_amount":"geheim"}`), Source: "rest", Field: "total_amount", Err: "expected a decimal"}}}
	err = session.Commit(ctx, tx)
	session.Close()
	if err != nil {
		t.Fatal(err)
	}
	c := s.do("watermark", "list").expect(t, exitDone, "2h0m ago: 3 differed", "orders: 1 row cannot be published, its total_amount: expected a decimal (orders/7 in store.dead_letters)")
	j := s.do("watermark", "list", "-o", "json").expect(t, exitDone, `"rows": 1`, `"ids"`)
	if strings.Contains(c.stdout.String()+j.stdout.String(), "geheim") {
		t.Errorf("a value of a row is shown:\n%s%s", c.stdout, j.stdout)
	}
}

func TestAResetShowsHowMuchItRepeatsAndWritesItsRequestsAsJSON(t *testing.T) {
	s := newStage(t)
	rows := []schemas.Record{s.order(1, "Shipped"), s.order(2, "Complete"), s.order(3, "Complete")}
	s.publish("orders", rows, nil, func(w *watermark.Watermark) { w.Settled = instant(t, "2026-11-20T09:31:00Z") })
	s.do("watermark", "reset", "orders", "--to", "2026-11-20T09:00:00Z", "--yes").expect(t, exitDone, "RECORDS SINCE", "about ", "31m0s")
	s.do("watermark", "reset", "orders", "--to", "2026-11-20", "-o", "json").expect(t, exitUsage, "add --yes")

	c := s.do("watermark", "reset", "orders", "users", "--to", "2026-11-20", "--yes", "-o", "json").expect(t, exitDone)
	var plan []replay
	if err := json.Unmarshal([]byte(c.stdout.String()), &plan); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	if len(plan) != 2 || plan[0].Request != 1 || plan[1].Request != 2 || plan[0].Records == nil || *plan[0].Records < 3 || plan[1].Records != nil || plan[1].Settled != nil {
		t.Errorf("%+v:\n%s", plan, c.stdout)
	}
	late := s.do("watermark", "reset", "orders", "--to", "2026-11-20T09:30:01Z", "--yes", "-o", "json").expect(t, exitDone)
	if err := json.Unmarshal([]byte(late.stdout.String()), &plan); err != nil || *plan[0].Records > 2 { // markers of transactions count
		t.Errorf("%v: no row is as new as that:\n%s", err, late.stdout)
	}
}

func TestARequestThatTheOwnerAcceptedIsNoLongerPending(t *testing.T) {
	s := newStage(t)
	s.publish("orders", nil, nil, func(w *watermark.Watermark) { w.Settled = instant(t, "2026-11-20T09:28:00Z") })
	s.do("watermark", "reset", "orders", "--to", "2026-11-19T12:00:00+02:00", "--yes").expect(t, exitDone, "request 0: replay from 2026-11-19T10:00:00.000000Z")
	s.publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request = 0
		w.Replay = &watermark.Replay{Request: 0, From: instant(t, "2026-11-19T10:00:00Z"), Ends: []int64{0, 0}}
	})
	c := s.do("watermark", "list").expect(t, exitDone, "replaying from 2026-11-19T10:00:00Z")
	if strings.Contains(c.stdout.String(), "waits") {
		t.Errorf("the request is shown as waiting:\n%s", c.stdout)
	}
}

func TestAResetThatIsNotConfirmedAsksNothingOfTheInstance(t *testing.T) {
	s := newStage(t)
	for _, answer := range []string{"", "\n", "no\n", "yesterday\n"} {
		(&call{args: append([]string{"watermark", "reset", "--all", "--to", "2026-11-19"}, s.flags...), app: app{terminal: true}, answer: answer}).
			run(t.Context()).expect(t, exitFailed, "not confirmed")
	}
	if c := s.do("watermark", "list"); strings.Contains(c.stdout.String(), "waits") {
		t.Errorf("a request was written:\n%s", c.stdout)
	}
}

func TestResetOfAllResourcesWritesOneRequestForEach(t *testing.T) {
	s := newStage(t)
	c := s.do("watermark", "reset", "--all", "--to", "2026-11-19", "--yes").expect(t, exitDone)
	for _, name := range []string{"orders", "order_items", "products", "users", "shipments"} {
		if !strings.Contains(c.stdout.String(), name+": request ") {
			t.Errorf("no request for %s:\n%s", name, c.stdout)
		}
	}
}
