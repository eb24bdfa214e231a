package client

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A service asks for a pause of 31 years, and is well again at once. What is made of it is told while it
// lasts: afterwards nobody needs it any more.
func TestALongPauseIsToldWhileItLasts(t *testing.T) {
	var refuses atomic.Bool
	refuses.Store(true)
	c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Swap(false) {
			w.Header().Set("Retry-After", "1000000000")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, emptyPage)
	})
	core, logs := observer.New(zapcore.InfoLevel)
	c.cfg.Log = zap.New(core)
	counted := make(chan float64, 1000)
	e := c.Endpoint("/store-products",
		uncounted, func(s float64) { counted <- s })
	read := make(chan error, 1)
	go func() {
		_, err := e.Page(t.Context(), "updated_from=2026-11-20", 0)
		read <- err
	}()
	select {
	case s := <-counted:
		if s <= 0 || s > 60 {
			t.Errorf("counted %v s of a wait that has just begun", s)
		}
	case err := <-read:
		t.Fatalf("the read ended (%v), and nothing was counted", err)
	}
	state := c.State()
	const why = "the service answered 429"
	d := time.Until(state.RefusedUntil)
	if d < 4*time.Minute || d > maxRetryAfter || state.RefusedSince.IsZero() || state.Refusal != why {
		t.Errorf("refused since %s, until %s: %q", state.RefusedSince, state.RefusedUntil, state.Refusal)
	}
	lines := logs.TakeAll()
	if len(lines) != 1 {
		t.Fatalf("%d lines in the log while it waits, expected one: %v", len(lines), lines)
	}
	said := lines[0].ContextMap()
	until, _ := said["until"].(time.Time)
	if !until.Equal(state.RefusedUntil) || said["status"] != int64(429) ||
		said["path"] != "/store-products" {
		t.Errorf("%v", said)
	}
	c.limit.mu.Lock()
	p := c.limit.paths["/store-products"]
	p.resume = time.Now() // five minutes are over
	p.since = p.since.Add(-5 * time.Minute)
	c.limit.mu.Unlock()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if lines = logs.TakeAll(); len(lines) != 1 || !strings.Contains(lines[0].Message, "no longer refuses") {
		t.Errorf("after the wait the log has %v", lines)
	}
	if s := c.State(); !s.RefusedSince.IsZero() || !s.RefusedUntil.IsZero() || s.Refusal != "" {
		t.Errorf("it still says: refused since %s, until %s: %q", s.RefusedSince, s.RefusedUntil, s.Refusal)
	}
}

// Short pauses come with every burst: nobody wants to read of them. Of those that several workers are asked
// for at once the first is told.
func TestAPauseIsToldOnceAndAShortOneNever(t *testing.T) {
	l, sent := newLimiter(10), time.Now()
	for _, step := range []struct {
		after time.Duration
		news  bool
	}{
		{0, false}, {2 * time.Second, false}, {time.Minute, true}, {61 * time.Second, false},
		{5 * time.Minute, true},
	} {
		if _, news := l.refused("/a", sent, step.after, ""); news != step.news {
			t.Errorf("a pause of %s is told: %v", step.after, news)
		}
	}
}
