package poller

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// What differs is looked at after a poll that began after it was read: nothing is published twice for being
// under way.
func TestWhatAPollDeliversMeanwhileIsNoDifference(t *testing.T) {
	s := openShop(t, 10, nil)
	id := s.askSweep()
	s.read = func(context.Context) { s.rows[1] = s.row(1, 0, 2) } // after the poll has read it
	s.poll()
	s.awaitSweep()
	s.read = nil
	records := len(s.topic)
	for range 3 { // whatever ends while a poll is reading
		if err := s.poller.sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.awaitSweep()
	}
	if len(s.topic) != records {
		t.Error("the sweep published what no poll has had the time to find")
	}
	s.await(id)
	if got := s.mark.Swept; got.Missing+got.Stale+got.Extra != 0 || len(s.topic) != records+1 {
		t.Errorf("swept %+v, %d records", got, len(s.topic)-records)
	}
}

func TestMoreDifferencesThanOneSweepTakesInAreRepairedByTheNextOnes(t *testing.T) {
	s := openShop(t, 10, nil)
	for id := range int64(95) {
		s.rows[100+id] = s.row(100+id, -2*time.Hour, 1)
	}
	s.poller.cfg.Sweep.MaxSuspects = 20
	s.sweep()
	for _, row := range s.rows {
		s.wants(row)
	}
	if s.full != 5 {
		t.Errorf("%d full reads, want 5", s.full)
	}
}

func TestASweepThatFailsIsShownAndTriedAgainAndPollsGoOn(t *testing.T) {
	s := openShop(t, 10, nil)
	s.err = errors.New("500 internal_error")
	s.rows[1] = s.row(1, -time.Hour, 2)
	id := s.askSweep()
	for range 60 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if s.full < 3 || s.full > 6 {
		t.Errorf("%d tries in a minute", s.full)
	}
	status := s.poller.Status()
	if status.Sweep.Err == nil || !status.Sweep.Next.After(s.now.Time()) || status.Err != nil {
		t.Errorf("status %+v", status.Sweep)
	}
	if s.mark.Sweep == nil {
		t.Error("nobody asks for it any more")
	}
	if s.mark.Swept != nil || s.mark.LastSweep != schemas.MinInstant {
		t.Error("it is said to have been done")
	}
	s.err = nil
	s.await(id)
	s.wants(s.rows[1])
	if status := s.poller.Status(); status.Sweep.Err != nil || status.Sweep.Doing != "" {
		t.Errorf("status %+v", status.Sweep)
	}
}

func TestASweepThatWasAskedForGoesOnWithTheNextOwner(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[1] = s.row(1, -time.Hour, 2)
	id := s.askSweep()
	s.poll() // begun
	s.takeOver()
	s.await(id)
	s.wants(s.rows[1])
	if s.mark.Swept.Request != id || s.full != 2 {
		t.Errorf("swept %+v, %d full reads", s.mark.Swept, s.full)
	}
}

func TestASweepAskedForWhileOneIsInHandComesAfterIt(t *testing.T) {
	s := openShop(t, 10, nil)
	s.askSweep()
	s.poll()
	s.rows[1] = s.row(1, -time.Hour, 2) // the sweep in hand has read it already
	s.sweep()
	s.wants(s.rows[1])
	if s.full != 2 {
		t.Errorf("%d full reads, want 2", s.full)
	}
}

// A request, or the end, does not wait for the last look: it is cut short, and taken again if there is a next
// poll.
func TestTheLastLookGivesWayToRequestsAndToTheEnd(t *testing.T) {
	for want, interrupt := range map[error]func(*shop){
		errAsked:   func(s *shop) { s.askSweep() },
		errStopped: func(s *shop) { close(s.stop) },
	} {
		s := openShop(t, 10, nil)
		s.stop = make(chan struct{})
		s.rows[1] = s.row(1, -time.Hour, 2)
		first := s.askSweep()
		for w := s.poller.sweeper.inHand; w == nil || !w.looked || w.working != nil; w = s.poller.sweeper.inHand {
			s.poll()
		}
		records := len(s.topic)
		s.hangs = true
		interrupt(s)
		if err := s.poller.sweep(t.Context(), s.stop); !errors.Is(err, want) {
			t.Errorf("%v, want: %v", err, want)
		}
		if len(s.topic) != records || s.poller.sweeper.inHand == nil {
			t.Error("the sweep did not wait")
		}
		if s.hangs = false; wait.Over(s.stop) {
			continue
		}
		s.poll()
		if s.mark.Swept == nil || s.mark.Swept.Request != first || s.mark.Sweep == nil {
			t.Errorf("swept %+v, and asked for %+v", s.mark.Swept, s.mark.Sweep)
		}
		s.wants(s.rows[1])
	}
}

// A sweep that waits for a poll makes room for others when polls fail.
func TestASweepIsGivenUpWhilePollsFail(t *testing.T) {
	turn := make(chan struct{}, 1)
	s := openShop(t, 10, func(c *Config) { c.Sweep.Turn = turn })
	s.askSweep()
	s.poll()
	down := errors.New("connection refused")
	for n := range patientPolls {
		if len(turn) != 1 {
			t.Fatalf("given up after %d polls", n)
		}
		s.poller.sweeper.pollFailed(down, n+1)
	}
	if len(turn) != 0 || !errors.Is(s.poller.Status().Sweep.Err, down) || s.mark.Sweep == nil {
		t.Errorf("status %+v, asked for %+v", s.poller.Status().Sweep, s.mark.Sweep)
	}
}

func TestSweepsWaitWhileAReplayRuns(t *testing.T) {
	s := openShop(t, 10, nil)
	ends := s.now.Add(time.Hour)
	running := watermark.Replay{Request: 1, From: schemas.MinInstant, At: ends, Ends: []int64{0}}
	s.poller.publisher.mark.Replay = &running
	s.askSweep()
	for range 10 {
		s.poll()
	}
	if s.full != 0 {
		t.Fatal("a sweep began while a replay was running")
	}
	s.now = s.now.Add(2 * time.Hour) // the next complete pass ends it
	s.poll()
	s.poll()
	if s.full != 1 {
		t.Error("no sweep after the replay")
	}
}

func TestSweepsOfOneInstanceTakeTurns(t *testing.T) {
	turn := make(chan struct{}, 1)
	s := openShop(t, 10, func(c *Config) { c.Sweep.Turn = turn })
	turn <- struct{}{} // another resource sweeps
	id := s.askSweep()
	s.poll()
	if doing := s.poller.Status().Sweep.Doing; s.full != 0 || !strings.Contains(doing, "waiting") {
		t.Fatalf("%d full reads, doing %q", s.full, doing)
	}
	<-turn
	s.await(id)
	if len(turn) != 0 {
		t.Error("the turn was not given back")
	}
}

func TestSweepsBeginByThemselvesAtFixedTimes(t *testing.T) {
	day := 24 * time.Hour
	born := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	never := schemas.MinInstant
	first := nextSweep("orders", never, born, day)
	if !first.After(born) || first.Sub(born) > day {
		t.Fatalf("first sweep at %s", first)
	}
	if again := nextSweep("orders", never, born.Add(time.Minute), day); !again.Equal(first) {
		t.Errorf("a restart puts the sweep off from %s to %s", first, again)
	}
	after := func(last time.Time) time.Time { return nextSweep("orders", schemas.InstantOf(last), born, day) }
	if next := after(first.Add(10 * time.Minute)); !next.Equal(first.Add(day)) {
		t.Errorf("after a sweep from %s the next is at %s", first, next)
	}
	if next := after(first.Add(-time.Hour)); !next.Equal(first.Add(day)) {
		t.Errorf("a sweep on request an hour before leads to one at %s", next)
	}
	if next := after(first.Add(-20 * time.Hour)); !next.Equal(first) {
		t.Errorf("a sweep on request twenty hours before leads to one at %s", next)
	}
	times := map[time.Time]bool{}
	for _, name := range []string{"orders", "order_items", "products", "users", "shipments"} {
		times[nextSweep(name, never, born, day).Truncate(30*time.Minute)] = true
	}
	if len(times) < 4 {
		t.Errorf("five resources begin within %d half hours", len(times))
	}
}

func TestAScheduledSweepIsMadeWhenItIsDueAndNotWithoutAnInterval(t *testing.T) {
	for _, interval := range []time.Duration{time.Hour, 0} {
		s := openShop(t, 10, func(c *Config) { c.Sweep.Interval = interval })
		s.rows[1] = s.row(1, -time.Hour, 2)
		for range 3 * 60 {
			s.poll()
			s.now = s.now.Add(time.Minute)
		}
		if want := map[time.Duration]int{time.Hour: 3, 0: 0}[interval]; s.full != want {
			t.Errorf("every %s: %d sweeps in three hours, want %d", interval, s.full, want)
		} else if want > 0 && (s.mark.Swept.Request != -1 || s.mark.LastSweep == schemas.MinInstant) {
			t.Errorf("swept %+v", s.mark.Swept)
		}
	}
}

func TestRunOnceDoesNotSweep(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Eager = true })
	s.askSweep()
	for range 5 {
		s.poll()
	}
	if s.full != 0 || s.mark.Sweep == nil {
		t.Errorf("%d full reads, sweep %v", s.full, s.mark.Sweep)
	}
}

// However a poller ends, nothing of its sweep is left running, and what it sweeps by is free for the next.
func TestASweepEndsWithItsPoller(t *testing.T) {
	for _, how := range []string{"stop", "cancel", "write fails"} {
		t.Run(how, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			turn := make(chan struct{}, 1)
			s := openShop(t, 10, func(c *Config) { c.Sweep.Turn, c.Interval = turn, time.Millisecond })
			s.askSweep()
			reading := make(chan struct{})
			s.read = func(ctx context.Context) {
				close(reading)
				<-ctx.Done()
			}
			s.err = errors.New("cut short")
			s.churn = &atomic.Uint64{} // there is always something to write
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := make(chan struct{})
			lost := errors.New("lost")
			fail := make(chan struct{})
			publish := s.poller.cfg.Publish
			s.poller.cfg.Publish = func(ctx context.Context, tx watermark.Transaction) error {
				if wait.Over(fail) {
					return lost
				}
				return publish(ctx, tx)
			}
			ended := make(chan error, 1)
			p := s.poller
			go func() { ended <- p.Run(ctx, stop) }()
			<-reading
			var want error
			switch how {
			case "stop":
				close(stop)
			case "cancel":
				cancel()
				want = context.Canceled
			case "write fails":
				close(fail)
				want = lost
			}
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("run: %v, want %v", err, want)
			}
			if len(turn) != 0 || p.sweeper.inHand != nil {
				t.Error("the sweep is still in hand")
			}
		})
	}
}
