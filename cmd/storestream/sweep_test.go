package main

import (
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestSweepWritesOneRequestForEachResourceAndSaysHowToFollowIt(t *testing.T) {
	s := newScene(t)
	s.do("sweep", "orders", "users").expect(t, exitDone, "orders: request 0: sweep", "users: request 1: sweep",
		"`storestream watermark list`")
	s.do("watermark", "list").expect(t, exitDone, "waits: sweep by "+whoAmI())
	c := s.do("sweep", "--all", "-y").expect(t, exitDone)
	if n := strings.Count(c.stdout.String(), ": request "); n != len(schemas.Names()) {
		t.Errorf("%d requests for --all:\n%s", n, c.stdout)
	}
}

func TestSweepAsksOnATerminalAndNotElsewhere(t *testing.T) {
	s := newScene(t)
	for answer, code := range map[string]int{"": exitFailed, "no\n": exitFailed, "y\n": exitDone} {
		c := s.answer(answer, "sweep", "orders", "--set", "sweep.deletes=tombstone").expect(t, code, "Sweep? [y/N]",
			"get a tombstone")
		if asked := strings.Contains(c.stdout.String(), ": request "); asked != (code == exitDone) {
			t.Errorf("answer %q: asked %v:\n%s", answer, asked, c.stdout)
		}
	}
	s.answer("", "sweep", "orders", "-y").expect(t, exitDone, ": request ")
}

func TestSweepWaitsUntilItsOwnRequestIsCarriedOut(t *testing.T) {
	s := newScene(t)
	out, _ := s.start("sweep", "orders", "users", "--wait")
	stage.Eventually(t, "the requests are written", func() bool {
		return strings.Contains(out.stdout.String(),
			"users: request 1")
	})
	earlier := &watermark.Swept{Request: -1}
	s.Publish("users", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.Swept = 1, &watermark.Swept{Request: 1, SourceRows: 1234}
		w.LastSweep = schemas.InstantOf(time.Now())
	})
	stage.Eventually(t, "the first is done", func() bool {
		return strings.Contains(out.stdout.String(), "users: swept 1,234 rows: the topic was right")
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { // accepted, and one from before is done
		w.Request, w.Swept, w.Sweep = 0, earlier, &watermark.Sweep{Request: 0}
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.Sweep = 0, nil
		w.Swept = &watermark.Swept{Request: 0, SourceRows: 10, Missing: 1, Stale: 2, Extra: 3, Published: 3,
			DeadLetters: 4, Left: "three rows stay"}
	})
	stage.Eventually(t, "the second is done", func() bool {
		return strings.Contains(out.stdout.String(), "orders: swept 10 rows: 1 missing, 2 stale, 3 extra; "+
			"3 published, 0 tombstones; 4 rows cannot be published (dead letters). Left: three rows stay")
	})
	if strings.Count(out.stdout.String(), "orders: swept") != 1 {
		t.Errorf("orders:\n%s", out.stdout)
	}
}

func TestARequestIsDoneWhenItOrALaterOneWasCarriedOut(t *testing.T) {
	for _, test := range []struct {
		name string
		mark watermark.Watermark
		done bool
	}{
		{"not accepted", watermark.Watermark{Request: 6, Swept: &watermark.Swept{Request: -1}}, false},
		{"in hand", watermark.Watermark{Request: 7, Sweep: &watermark.Sweep{Request: 7},
			Swept: &watermark.Swept{Request: 6}}, false},
		{"waits for one that nobody asked for", watermark.Watermark{Request: 7, Sweep: &watermark.Sweep{Request: 7},
			Swept: &watermark.Swept{Request: -1}}, false},
		{"done", watermark.Watermark{Request: 7, Swept: &watermark.Swept{Request: 7}}, true},
		{"done, and another was asked for since", watermark.Watermark{Request: 9,
			Sweep: &watermark.Sweep{Request: 9}, Swept: &watermark.Swept{Request: 7}}, true},
		{"replaced by a later one before it began", watermark.Watermark{Request: 9,
			Sweep: &watermark.Sweep{Request: 9}, Swept: &watermark.Swept{Request: 5}}, false},
		{"that one is done", watermark.Watermark{Request: 9, Swept: &watermark.Swept{Request: 9}}, true},
		{"never swept", watermark.Watermark{Request: 7}, false},
	} {
		if got := swept(test.mark, 7); got != test.done {
			t.Errorf("%s: %v, want %v", test.name, got, test.done)
		}
	}
}
