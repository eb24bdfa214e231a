package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/watermark"
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
