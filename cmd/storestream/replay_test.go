package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestReplayAsksForAPartAndFollowsItToItsEnd(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Shipped")}, nil, nil)
	out, _, wait := s.run("replay", "orders", "--from", "2026-11-19", "--to", "2026-11-21T00:00:00Z", "--yes",
		"--wait", "--why", "a consumer lost them")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for a replay from "+
			"2026-11-19T00:00:00.000000Z to 2026-11-21T00:00:00.000000Z")
	})
	asked := s.requestFor("orders")
	if asked.Kind != watermark.Replays || asked.From == nil || asked.To == nil || asked.Rows != nil ||
		asked.Why != "a consumer lost them" {
		t.Errorf("asked %+v", asked)
	}
	s.do("requests", "orders").expect(t, exitDone, "replay from 2026-11-19T00:00:00Z to 2026-11-21T00:00:00Z",
		"a consumer lost them", "waits for an instance")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Parts = []watermark.Part{watermark.PartOf(asked, schemas.MinInstant, []int64{2})}
		w.ChangePart(func(p *watermark.Part) { p.Rows, p.Of, p.Failure = 1, 2, "it failed 3 times in a row" })
	})
	s.do("replay", "list").expect(t, exitDone, "in hand: replaying a part: 1 of at most 2 rows published again")
	s.do("watermark", "list").expect(t, exitLate, "replaying a part: 1 of at most 2 rows published again",
		"orders: the replay has not ended: it failed 3 times in a row")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.ChangePart(func(p *watermark.Part) { p.Rows = 2 })
		w.End(w.Parts[0].Ended(schemas.MinInstant, ""))
		w.Parts = nil
	})
	wait().expect(t, exitDone, "orders: published again: 2 rows since 2026-11-19T00:00:00.000000Z, in 0.0s")
	s.do("replay", "list", "orders").expect(t, exitDone,
		"published again: 2 rows since 2026-11-19T00:00:00.000000Z, in 0.0s")
}

func TestReplayWaitsSayThatSomeWereLeftOrThatItWasCancelled(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	out, _, wait := s.run("replay", "orders", "--ids", "1,2", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for a replay of 2 rows")
	})
	asked := s.requestFor("orders")
	s.do("replay", "cancel", "orders", "--yes").expect(t, exitDone, "orders: asked for an end of its replays")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		p := watermark.PartOf(asked, schemas.MinInstant, nil)
		w.End(p.Ended(schemas.MinInstant.Add(time.Second), "cancelled"))
	})
	wait().expect(t, exitDifferent, "published again: 0 rows, in 1.0s. Left: cancelled")
}

func TestReplaySaysWhatItExpects(t *testing.T) {
	s := newScene(t)
	one := "expected --from, or --from and --to, or --ids"
	s.do("replay", "orders", "--yes").expect(t, exitUsage, one)
	s.do("replay", "orders", "--to", "2026-11-20", "--yes").expect(t, exitUsage, one)
	s.do("replay", "orders", "--ids", "1", "--from", "2026-11-20", "--yes").expect(t, exitUsage, one)
	s.do("replay", "orders", "users", "--ids", "1", "--yes").expect(t, exitUsage, "--ids: expected one resource")
	s.do("replay", "orders", "--from", "tomorrow", "--yes").expect(t, exitUsage,
		"--from \"tomorrow\": expected a time")
	s.do("replay", "orders", "--from", "2026-11-20", "--to", "2026-11-20", "--yes").expect(t, exitUsage,
		"expected a time after --from")
	s.do("replay", "orders", "--from", "2026-11-20", "--why", "two\nlines", "--yes").expect(t, exitUsage,
		"--why: expected one line of at most 200 bytes")
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, func(w *watermark.Watermark) {
		w.Parts = make([]watermark.Part, watermark.MostParts)
	})
	s.do("replay", "orders", "--ids", "1", "--yes").expect(t, exitFailed,
		"orders: 5 replays of parts wait already", "storestream replay cancel orders")
	s.do("replay", "order", "--from", "2026-11-20").expect(t, exitUsage, "order")
	s.do("replay", "--yes", "--from", "2026-11-20").expect(t, exitUsage, "expected one or more resources")
}

func TestRequestsSaysWhoAskedForWhatAndWhatBecameOfIt(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	s.do("sweep", "orders", "--yes", "--confirm-deletes", "2").expect(t, exitDone)
	swept := s.requestFor("orders")
	s.do("erase", "orders", "1", "2", "--yes", "--why", "the law").expect(t, exitDone)
	s.do("sweep", "users", "--yes").expect(t, exitDone)
	var all []asked
	if err := json.Unmarshal([]byte(s.do("requests", "-o", "json").stdout.String()), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || all[1].Why != "the law" || all[1].ID != all[0].ID+1 || all[2].Resource != "users" {
		t.Fatalf("%+v", all)
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Swept = &watermark.Swept{RequestUID: swept.UID, SourceRows: 7}
		w.Request, w.RequestUID = all[1].ID, all[1].UID
		w.AcceptErase(all[1].Request, schemas.MinInstant)
		w.EndErase(map[int64]string{1: "", 2: "the service has it"}, schemas.MinInstant)
	})
	out := s.do("requests").expect(t, exitDone, "sweep, confirms 2 deletions", "swept 7 rows", "the law",
		"erase of 1, 2", "1 erased, 1 stay", "waits for an instance", whoAmI())
	if n := strings.Count(out.stdout.String(), "\n"); n != 4 {
		t.Errorf("%d lines:\n%s", n, out.stdout)
	}
	if text := s.do("requests", "users").stdout.String(); strings.Contains(text, "orders") {
		t.Errorf("of users alone:\n%s", text)
	}
}

func TestACancelSaysWhatItEndsAndWhetherItDid(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, func(w *watermark.Watermark) {
		w.Parts = []watermark.Part{{Kind: watermark.Replays, Rows: 3, Of: 9}, {Kind: watermark.Retries}}
	})
	out, _, wait := s.run("replay", "cancel", "orders", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for an end of its replays")
	})
	asked := s.requestFor("orders")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID, w.Parts = asked.ID, asked.UID, nil
		w.End(watermark.Result{Request: asked.ID, RequestUID: asked.UID, Kind: asked.Kind,
			Left: "there is no replay to cancel"})
	})
	wait().expect(t, exitDifferent, "replaying a part: 3 of at most 9 rows published again; 1 more of these",
		"orders: not done: there is no replay to cancel")
}
