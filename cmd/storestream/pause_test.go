package main

import (
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestPauseAndResumeSayWhatTheyDid(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	out, _, wait := s.run("pause", "orders", "--for", "2h", "--why", "a migration", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for a pause until ")
	})
	asked := s.requestFor("orders")
	if asked.Kind != watermark.Pauses || asked.To == nil || asked.To.Sub(asked.At).Hours() < 1.9 {
		t.Errorf("asked %+v", asked)
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Pause = &watermark.Pause{Since: asked.At, Until: asked.To, Why: asked.Why, By: asked.By}
		w.End(watermark.Result{Request: asked.ID, RequestUID: asked.UID, Kind: asked.Kind})
	})
	wait().expect(t, exitDone, "orders: done\n")
	s.do("requests").expect(t, exitDone, "pause to ", "a migration", "done")
	s.do("pause", "orders", "--for", "-1s", "--yes").expect(t, exitUsage, "--for -1s: expected more than 0")
	s.do("pause", "--yes").expect(t, exitUsage, "expected one or more resources, or --all")
	s.do("resume", "orders", "--yes").expect(t, exitDone, "orders: asked for an end of its pause")
}
