package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		header, date string
		want         time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"7", "", 7 * time.Second},
		{"1.5", "", 1500 * time.Millisecond},
		{"-3", "", 0},
		{"NaN", "", 0},
		{"soon", "", 0},
		{"86400", "", maxRetryAfter},
		{"1e300", "", maxRetryAfter},
		{date(9 * time.Second), "", 9 * time.Second},
		{date(-time.Hour), "", 0},
		{date(240 * time.Hour), "", maxRetryAfter},
		{date(time.Hour), date(time.Hour - 8*time.Second), 8 * time.Second}, // its clock is an hour ahead
	} {
		h := http.Header{"Retry-After": {c.header}, "Date": {c.date}}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%q (Date %q): %s, want %s", c.header, c.date, got, c.want)
		}
	}
}

// The service refuses one request: all wait, and none is sent before the time is up.
func TestARefusalHoldsBackAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10)
		_ = l.wait(t.Context(), "/a", func(float64) {})
		began := time.Now()
		l.refused("/a", began, 30*time.Second, "")
		var workers sync.WaitGroup
		var waited atomic.Int64
		for range 3 {
			workers.Go(func() {
				if err := l.wait(t.Context(), "/a", func(s float64) { waited.Add(int64(s)) }); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d < 30*time.Second {
					t.Errorf("sent after %s", d)
				}
			})
		}
		workers.Wait()
		if waited.Load() != 90 {
			t.Errorf("counted %d s of waiting, want 90", waited.Load())
		}
	})
}

// Whoever has a deadline that ends before its turn is not let through early.
func TestADeadlineIsNoReasonToSendSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(2)
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		granted := 0
		for range 20 {
			if err := l.wait(ctx, "/a", func(float64) {}); err == nil {
				granted++
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("refused: %v", err)
			}
		}
		if granted != 3 {
			t.Errorf("granted %d within 1.2 s at 2 a second", granted)
		}
		began := time.Now()
		if err := l.wait(t.Context(), "/a", func(float64) {}); err != nil || time.Since(began) > time.Second {
			t.Errorf("the next one waited %s for those that were not let through: %v", time.Since(began), err)
		}
	})
}

func TestTheRateIsHalvedOnceAnEpisodeAndComesBackSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, paths := newLimiter(8), []string{"/a", "/b", "/c", "/d", "/e"}
		sent := time.Now()
		for _, path := range paths { // five workers, all sent before the first refusal was known
			l.refused(path, sent, 0, "")
		}
		l.accepted("/a", sent) // as much as the refusals say of the rate before
		if s := l.state(); s.RequestsPerSecond != 4 || s.RefusedSince.IsZero() {
			t.Errorf("%+v", s)
		}
		<-time.After(time.Second) // the bubble's clock
		l.refused("/a", time.Now(), 0, "")
		if rate := l.state().RequestsPerSecond; rate != 2 {
			t.Errorf("rate %v after a second episode, want 2", rate)
		}
		for seconds := range 1000 {
			<-time.After(time.Second) // the bubble's clock
			for _, path := range paths {
				l.accepted(path, time.Now())
			}
			if rate := l.state().RequestsPerSecond; rate > min(8, 2+0.08*float64(seconds+1)+0.001) {
				t.Fatalf("rate %v after %d s", rate, seconds+1)
			}
		}
		if s := l.state(); s.RequestsPerSecond != 8 || !s.RefusedSince.IsZero() {
			t.Errorf("%+v, want the ceiling again", s)
		}
	})
}

// One resource that is refused again and again, for whatever reason, leaves the others their rate.
func TestAPathThatIsRefusedAloneWaitsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := newLimiter(8), time.Now()
		for range 20 {
			<-time.After(time.Second) // the bubble's clock
			l.accepted("/b", time.Now())
			l.refused("/a", time.Now(), time.Minute, "429 to /a")
		}
		if s := l.state(); s.RequestsPerSecond < 4 || s.Refusal != "429 to /a" ||
			s.RefusedSince != began.Add(time.Second) {
			t.Errorf("%+v", s)
		}
		if d := l.remaining("/b"); d > 0 {
			t.Errorf("/b waits for %s", d)
		}
		if p := l.holds("/b"); p.why != "" || !p.since.IsZero() || !p.resume.IsZero() {
			t.Errorf("/b is said to wait: %+v", p)
		}
		if d := l.remaining("/a"); d != time.Minute {
			t.Errorf("/a waits for %s", d)
		}
		<-time.After(time.Minute + lastPause + 1) // the bubble's clock; nobody asks for /a any more
		if s := l.state(); !s.RefusedSince.IsZero() {
			t.Errorf("it is still said to be refused: %+v", s)
		}
	})
}

// Two paths that are refused at once have the key in common. All wait for as long as both were told to.
func TestTwoPathsThatAreRefusedPauseAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(8)
		l.refused("/a", time.Now(), 5*time.Minute, "429 to /a")
		l.refused("/b", time.Now(), 20*time.Second, "429 to /b")
		for path, want := range map[string]time.Duration{
			"/a": 5 * time.Minute, "/b": 20 * time.Second, "/c": 20 * time.Second,
		} {
			if d := l.remaining(path); d != want {
				t.Errorf("%s waits for %s, want %s", path, d, want)
			}
		}
		if p := l.holds("/c"); p.why != "429 to /b" {
			t.Errorf("/c is said to wait for %q", p.why)
		}
		<-time.After(20 * time.Second) // the bubble's clock
		if p := l.holds("/c"); p.why != "" {
			t.Errorf("/c is said to wait for %q, and the pause is over", p.why)
		}
		if p := l.holds("/b"); p.why != "429 to /b" {
			t.Errorf("/b is said to wait for %q, and nobody knows yet how it is answered", p.why)
		}
		l.accepted("/b", time.Now())
		if d := l.remaining("/c"); d > 0 {
			t.Errorf("/c waits for %s, and only /a is refused", d)
		}
	})
}

// An answer that was accepted meanwhile ended the refusals in a row. The second one also raises the rate.
func TestARefusalOfARequestFromBeforeTheRateChangedPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, accepted := range []time.Duration{time.Second, raiseEvery} { // after the rate was halved
			l := newLimiter(8)
			l.refused("/a", time.Now(), 0, "")
			<-time.After(accepted / 2) // the bubble's clock
			sent := time.Now()
			if accepted < raiseEvery {
				sent = l.changed
			}
			<-time.After(accepted / 2) // the bubble's clock
			l.accepted("/a", time.Now())
			until, _ := l.refused("/a", sent, 0, "")
			if d := time.Until(until); d < firstPause || d > time.Second {
				t.Errorf("a pause of %s", d)
			}
			<-time.After(time.Second) // the bubble's clock
			if l.accepted("/a", time.Now()); !l.state().RefusedSince.IsZero() {
				t.Errorf("%+v", l.state())
			}
		}
	})
}
