package poller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/standins/servers"
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
		if err := s.poller.sweeper.step(t.Context()); err != nil {
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
	if s.full < 5 || s.full > 7 {
		t.Errorf("%d full reads, want about 5", s.full)
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
	if status.Sweep.Error == "" || !status.Sweep.Next.After(s.now.Time()) || status.Err != nil {
		t.Errorf("status %+v", status.Sweep)
	}
	if s.mark.Sweep == nil {
		t.Fatal("nobody asks for it any more")
	}
	says := fmt.Sprintf("it failed %d times in a row and is tried again at %s: 500 internal_error", s.full,
		status.Sweep.Next.Format(time.RFC3339))
	if s.mark.Sweep.Failure != says {
		t.Errorf("the watermark says %q, not %q", s.mark.Sweep.Failure, says)
	}
	s.takeOver() // the next owner knows
	if s.poll(); s.mark.Sweep == nil || s.mark.Sweep.Failure == "" {
		t.Errorf("after a takeover: %+v", s.mark.Sweep)
	}
	if s.mark.Swept != nil || s.mark.LastSweep != schemas.MinInstant {
		t.Error("it is said to have been done")
	}
	s.err = nil
	s.await(id)
	s.wants(s.rows[1])
	if status := s.poller.Status(); status.Sweep.Error != "" || status.Sweep.Doing != "" {
		t.Errorf("status %+v", status.Sweep)
	}
}

func TestASweepThatWasAskedForGoesOnWithTheNextOwner(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[1] = s.row(1, -time.Hour, 2)
	id := s.askSweep()
	s.poll() // begun
	if s.mark.Sweep.Tried == nil {
		t.Error("the watermark does not say that it is in hand")
	}
	s.mark.HandSweepOver()
	s.takeOver()
	s.await(id)
	s.wants(s.rows[1])
	if s.mark.Swept.Request != id || s.full != 2 {
		t.Errorf("swept %+v, %d full reads", s.mark.Swept, s.full)
	}
}

// shopOfParts is a shop of 60 rows. No more than four that differ make a part of a sweep, and its memory is
// too small for all.
func shopOfParts(t *testing.T, change func(*Config)) *shop {
	t.Helper()
	return openShop(t, 60, func(c *Config) {
		c.Sweep.ByID, c.Sweep.MaxSuspects, c.Sweep.Memory, c.Sweep.Scratch = true, 4, 1000, 1<<20
		if change != nil {
			change(c)
		}
	})
}

// inParts polls until the sweep has ended n parts or is over.
func (s *shop) inParts(n int) {
	s.t.Helper()
	for last := (*int64)(nil); n > 0; {
		s.poll()
		s.now = s.now.Add(time.Second)
		if s.mark.Sweep == nil {
			return
		}
		if from := s.mark.Sweep.From; from != nil && (last == nil || *from > *last) {
			last, n = from, n-1
		}
	}
}

func TestASweepInPartsFindsAndCountsAllOfIt(t *testing.T) {
	s := shopOfParts(t, func(c *Config) { c.Sweep.Tombstone = true })
	for id := int64(5); id < 60; id += 10 {
		s.rows[id] = s.row(id, -time.Hour, 2)
	}
	for _, id := range []int64{math.MinInt64, -7, 100, math.MaxInt64} {
		s.rows[id] = s.row(id, -2*time.Hour, 1)
	}
	delete(s.rows, 0)
	delete(s.rows, 59)
	id := s.askSweep()
	if s.inParts(2); s.mark.Sweep == nil || len(s.topic) != 60+8 {
		t.Errorf("after two parts: %+v, %d records", s.mark.Sweep, len(s.topic))
	}
	s.await(id)
	got := *s.mark.Swept
	want := watermark.Swept{Request: 1, Began: got.Began, SourceRows: 62, TopicRows: 60, Missing: 4, Stale: 6,
		Extra: 2, Published: 10, Tombstones: 2}
	if got != want || s.full != 1 {
		t.Errorf("swept %+v, want %+v; %d full readings", got, want, s.full)
	}
	for _, row := range s.rows {
		s.wants(row)
	}
}

// What polls publish between two parts makes no difference to the later one.
func TestThePartsOfASweepReadEachSideOnce(t *testing.T) {
	for _, byID := range []bool{false, true} {
		started := 0
		s := shopOfParts(t, func(c *Config) {
			c.Sweep.ByID, c.Sweep.Tombstone, c.Sweep.MaxSuspects = byID, true, 1
			read := c.Sweep.Topic
			c.Sweep.Topic = func(ctx context.Context, from []int64, wanted func(int64) bool,
				fold func(watermark.Published) error) ([]int64, error) {
				if from == nil {
					started++
				}
				return read(ctx, from, wanted, fold)
			}
		})
		s.rows[5], s.rows[50] = s.row(5, -time.Hour, 2), s.row(50, -time.Hour, 2)
		delete(s.rows, 58)
		id := s.askSweep()
		s.inParts(1)
		for _, id := range []int64{51, 70} { // a poll publishes them
			s.rows[id] = row{id: id, updatedAt: s.now, content: 3}
		}
		s.await(id)
		got := s.mark.Swept
		if got.Stale != 2 || got.Extra != 1 || got.Tombstones != 1 || got.Missing != 0 || got.Published != 2 ||
			got.Left != "" {
			t.Errorf("by id %t: swept %+v", byID, got)
		}
		if started != 1 || s.full != 1 {
			t.Errorf("by id %t: the topic was read %d times, the source %d times", byID, started, s.full)
		}
		for _, row := range s.rows {
			s.wants(row)
		}
	}
}

// A sweep that is asked for reads both sides anew, whatever the one before it has in its file.
func TestASweepThatIsAskedForBelievesNoFileOfTheOneBefore(t *testing.T) {
	s := shopOfParts(t, func(c *Config) { c.Sweep.MaxSuspects = 1 })
	s.rows[5] = s.row(5, -time.Hour, 2)
	s.askSweep()
	s.inParts(1)
	s.rows[5], s.rows[50] = s.row(5, -time.Hour, 3), s.row(50, -time.Hour, 3)
	s.await(s.askSweep())
	if got := s.mark.Swept; got.Stale != 2 || got.Published != 2 || got.Left != "" || s.full != 2 {
		t.Errorf("swept %+v, %d full readings", got, s.full)
	}
}

// Each death costs a part, and the next owner waits before it tries again: 2 min, 16 min, ... up to the
// interval. What was done is not done again.
func TestASweepThatDiesGoesOnWithItsPartAfterAWhile(t *testing.T) {
	s := shopOfParts(t, func(c *Config) { c.Sweep.Interval = 3 * time.Hour })
	for id := range int64(60) {
		s.rows[id] = s.row(id, -time.Hour, 2) // no poll sees it
	}
	id := s.askSweep()
	s.inParts(1)
	done := *s.mark.Sweep
	if done.From == nil || done.Done.Published == 0 || done.Tried != nil || done.Attempts != 0 {
		t.Fatalf("after a part: %+v, %+v", done, done.Done)
	}
	records := len(s.topic)
	for _, wait := range []time.Duration{2 * time.Minute, 16 * time.Minute, 128 * time.Minute,
		3 * time.Hour, 3 * time.Hour} {
		for s.mark.Sweep.Tried == nil {
			s.poll()
			s.now = s.now.Add(time.Second)
		}
		full := s.full
		s.takeOver() // the process died
		began := s.now
		if status := s.poller.Status().Sweep; status.Error == "" || !status.Next.Equal(s.now.Time().Add(wait)) {
			t.Errorf("it is told as %+v", status)
		}
		for s.now.Sub(began) < wait-time.Minute {
			s.poll()
			s.now = s.now.Add(time.Minute)
		}
		if s.full != full {
			t.Fatalf("tried again within %s", wait)
		}
		if s.mark.Sweep.NotBefore == nil || len(s.topic) != records || *s.mark.Sweep.From != *done.From {
			t.Errorf("%+v, %d records", s.mark.Sweep, len(s.topic)-records)
		}
		s.takeOver() // as planned: nothing is in hand, and it waits no longer for that
		s.now = began.Add(wait)
	}
	s.await(id)
	if got := s.mark.Swept; got.SourceRows != 60 || got.Stale != 60 || got.Published != 60 {
		t.Errorf("swept %+v", got)
	}
	if got := len(s.topic); got != 120 {
		t.Errorf("%d records, want each row twice", got)
	}
}

// Whoever asks anew has looked at why it died.
func TestASweepThatDiedBeginsAtOnceWhenItIsAskedForAnew(t *testing.T) {
	s := openShop(t, 10, nil)
	s.askSweep()
	s.poll()
	s.takeOver()
	s.poll()
	if s.full != 1 || s.poller.Status().Sweep.Error == "" {
		t.Fatalf("%d full reads, %+v", s.full, s.poller.Status().Sweep)
	}
	id := s.askSweep()
	s.poll()
	if s.full != 2 || s.poller.Status().Sweep.Error != "" {
		t.Errorf("%d full reads, %+v", s.full, s.poller.Status().Sweep)
	}
	s.await(id)
}

// A handover as planned, to another instance or because this one stops, is no death.
// Also if the group takes the resource away, between two transactions or in the middle of one.
func TestASweepThatIsHandedOverDoesNotWait(t *testing.T) {
	for _, cause := range []error{ErrStopping, errors.New("the group takes the resource away")} {
		for _, committing := range []bool{false, true} {
			s := openShop(t, 10, nil)
			id := s.askSweep()
			s.poll()
			ctx, stop := context.WithCancelCause(t.Context())
			if committing {
				s.rows[7] = s.row(7, 0, 2)
				s.publishes = func(commit context.Context, tx watermark.Transaction) error {
					s.publishes = s.publish
					if stop(cause); !errors.Is(cause, ErrStopping) {
						<-commit.Done()
						return context.Cause(commit)
					}
					return s.publish(commit, tx)
				}
			} else {
				stop(cause)
			}
			err := s.poller.Run(ctx)
			s.poller.HandSweepOver(ctx)
			if !errors.Is(cause, ErrStopping) != errors.Is(err, cause) || s.mark.Sweep.Tried != nil {
				t.Fatalf("%v: %v, %+v", cause, err, s.mark.Sweep)
			}
			s.takeOver()
			s.poll()
			s.poll()
			if s.full != 2 {
				t.Errorf("%v: %d full reads, want 2", cause, s.full)
			}
			s.await(id)
			s.wants(s.rows[7])
		}
	}
}

func TestASweepInHandDoesNotWaitAfterAReset(t *testing.T) {
	s := openShop(t, 10, nil)
	id := s.askSweep()
	s.poll() // begun
	s.ask(watermark.Request{Kind: watermark.Reset, To: &s.now})
	if err := s.work(); !errors.Is(err, ErrTakeover) || s.mark.Sweep.Tried != nil {
		t.Fatalf("%v, the watermark says %+v", err, s.mark.Sweep)
	}
	s.takeOver()
	s.await(id)
}

func TestPollsComeBeforeASweep(t *testing.T) {
	s := openShop(t, 10, nil)
	s.askSweep()
	s.poll()
	s.mark.HandSweepOver()
	s.takeOver()
	if err := s.poller.sweeper.step(t.Context()); err != nil || s.poller.sweeper.inHand != nil {
		t.Errorf("%v, a new owner sweeps before its first pass", err)
	}
}

// Over REST no pass is complete while a past day cannot be closed, which may stay so.
func TestANewOwnerSweepsThoughNoPassIsComplete(t *testing.T) {
	s := openShop(t, 10, nil)
	s.poll()
	s.rows[1] = s.row(1, -time.Hour, 2) // no poll sees it
	s.takeOver()
	s.partly = true
	s.await(s.askSweep())
	s.wants(s.rows[1])
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

// Whoever may write to store.requests can have rows deleted: each request that is done is a line of the log.
func TestEachRequestThatIsAcceptedIsALineOfTheLog(t *testing.T) {
	s := openShop(t, 10, nil)
	core, logged := observer.New(zap.InfoLevel)
	s.config.Log = zap.New(core)
	s.takeOver()
	ahead := s.now.Add(24 * time.Hour)
	s.ask(watermark.Request{Kind: watermark.Sweeps, By: "eve@host", ConfirmedDeletes: 9})
	s.ask(watermark.Request{Kind: "dance", By: "eve@host"})
	rows := []int64{3, 4}
	s.ask(watermark.Request{Kind: watermark.Erases, By: "eve@host", Rows: rows})
	s.ask(watermark.Request{Kind: watermark.Reset, By: "eve@host", To: &ahead})
	s.ask(watermark.Request{Kind: watermark.Sweeps, By: "eve@host", ConfirmedDeletes: 9,
		At: s.now.Add(-2 * time.Hour)})
	s.poll()
	s.poll()
	var got []string
	for _, line := range logged.FilterMessage("request accepted").All() {
		f := line.ContextMap()
		got = append(got, fmt.Sprint(f["topic"], f["request"], f["kind"], f["by"], f["confirmed_deletes"],
			f["rows"]))
	}
	want := []string{fmt.Sprint("store.requests", int64(1), "sweep", "eve@host", int64(9), int64(0)),
		fmt.Sprint("store.requests", int64(3), "erase", "eve@host", int64(0), int64(2)),
		fmt.Sprint("store.requests", int64(5), "sweep", "eve@host", int64(9), int64(0))}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, expected %q", got, want)
	}
	// What is not done, or not all of it, is named so too.
	for id, says := range map[int64]string{2: "request refused", 4: "request refused",
		5: "a request goes on without its --confirm-deletes"} {
		lines := logged.Filter(func(line observer.LoggedEntry) bool {
			f := line.ContextMap()
			return strings.HasPrefix(line.Message, says) && f["request"] == id && f["by"] == "eve@host" &&
				f["topic"] == "store.requests"
		})
		if lines.Len() != 1 {
			t.Errorf("%d lines %q that name request %d:\n%+v", lines.Len(), says, id, logged.All())
		}
	}
}

func TestSweepsWaitWhileAReplayRuns(t *testing.T) {
	s := openShop(t, 10, nil)
	running := watermark.Replay{Request: 1, From: schemas.MinInstant, At: s.now, Ends: []int64{0}}
	s.poller.state.mark.Replay = &running
	id := s.askSweep()
	if err := s.poller.acceptRequests(); err != nil {
		t.Fatal(err)
	}
	err := s.poller.sweeper.step(t.Context())
	if s.awaitSweep(); err != nil || s.full != 0 {
		t.Fatalf("a sweep began while a replay was running, %v", err)
	}
	s.await(id) // the next complete pass ends the replay
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

// The overlap of a resource may be minutes, and others wait for their turn.
func TestASweepThatWaitsForAConfirmationLetsOthersSweep(t *testing.T) {
	turn := make(chan struct{}, 1)
	s := openShop(t, 10, func(c *Config) { c.Sweep.Turn, c.Sweep.Tombstone = turn, true })
	delete(s.rows, 1)
	id := s.askSweep()
	s.pollFor(shopOverlap / 2)
	if doing := s.poller.Status().Sweep.Doing; len(turn) != 0 || doing != "waiting to look again" {
		t.Fatalf("the turn is taken: %d, doing %q", len(turn), doing)
	}
	turn <- struct{}{} // another resource sweeps, for longer than this one waits
	s.await(id)
	if got := s.mark.Swept; got.Tombstones != 1 || len(turn) != 1 {
		t.Errorf("swept %+v, and the other's turn is taken: %d", got, len(turn))
	}
	<-turn
	s.askSweep()
	s.pollFor(10 * time.Second)
	s.poller.sweeper.end() // a handover; it gives back what it has, once
	s.poller.sweeper.end()
	if len(turn) != 0 {
		t.Error("the turn was not given back")
	}
}

func TestSweepsBeginByThemselvesAtFixedTimes(t *testing.T) {
	day := 24 * time.Hour
	born := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	first := nextSweep("orders", born, day)
	if !first.After(born) || first.Sub(born) > day {
		t.Fatalf("first sweep at %s", first)
	}
	if again := nextSweep("orders", born.Add(time.Minute), day); !again.Equal(first) {
		t.Errorf("a restart puts the sweep off from %s to %s", first, again)
	}
	after := func(last time.Time) time.Time { return nextSweep("orders", last.Add(day/2), day) }
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
		times[nextSweep(name, born, day).Truncate(30*time.Minute)] = true
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
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			lost := errors.New("lost")
			fail := make(chan struct{})
			publish := s.publishes
			s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
				if servers.Closed(fail) {
					return lost
				}
				return publish(ctx, tx)
			}
			ended := make(chan error, 1)
			p := s.poller
			go func() { ended <- p.Run(ctx) }()
			<-reading
			var want error
			switch how {
			case "stop":
				cancel(ErrStopping)
			case "cancel":
				cancel(nil)
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

// A look may take minutes over REST, and polls do not wait for it. What they read meanwhile counts.
func TestPollsGoOnWhileASweepLooks(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	delete(s.rows, 1)
	s.rows[2] = s.row(2, -time.Hour, 2)
	id := s.askSweep()
	s.pollFor(10 * time.Second) // it has looked once
	reading, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	rows := maps.Clone(s.rows)
	s.looks = func(Request) {
		once.Do(func() {
			close(reading)
			<-goOn
			s.rows = rows
		})
	}
	for s.poller.sweeper.inHand.working == nil {
		s.now = s.now.Add(time.Second)
		if err := s.work(); err != nil {
			t.Fatal(err)
		}
	}
	<-reading
	for range 10 {
		s.rows[1] = row{id: 1, updatedAt: s.now, content: 5}
		if err := s.work(); err != nil {
			t.Fatal(err)
		}
		s.wants(s.rows[1])
	}
	close(goOn)
	s.awaitSweep()
	s.await(id)
	for _, r := range s.topic {
		if r.ID == 1 && r.Tombstone {
			t.Errorf("row 1 has a tombstone, swept %+v", s.mark.Swept)
		}
	}
	s.wants(s.rows[2])
}

// Between the last look and the repair a poll may publish just what the look has shown.
func TestWhatIsDeliveredAfterTheLastLookIsNotPublishedAgain(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[1] = s.row(1, -time.Hour, 2)
	id := s.askSweep()
	for w := s.poller.sweeper.inHand; w == nil || w.looks < 2 || w.working == nil; w = s.poller.sweeper.inHand {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.topic = append(s.topic, s.published(s.rows[1]))
	records := len(s.topic)
	s.await(id)
	if got := s.mark.Swept; got.Stale != 0 || len(s.topic) != records {
		t.Errorf("swept %+v, %d records more", got, len(s.topic)-records)
	}
}

// The row is nowhere at all looks. Meanwhile a poll has met it once, or a row that has lost its id.
func TestNothingIsDeletedThatAPollMayHaveMetMeanwhile(t *testing.T) {
	for name, ask := range map[string]func(*shop){
		"sweep": func(s *shop) { s.askSweep() },
		"erase": func(s *shop) { s.erase(1) },
	} {
		for _, nameless := range []bool{false, true} {
			s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
			delete(s.rows, 1)
			ask(s)
			s.pollFor(shopOverlap / 2)
			s.rows[1] = row{id: 1, updatedAt: s.now, content: 5, bad: nameless, nameless: nameless}
			s.poll()
			delete(s.rows, 1)
			s.pollFor(5 * shopOverlap)
			if r, _ := s.newest(1); r.Tombstone || s.mark.Sweep != nil || len(s.mark.Erase) > 0 {
				t.Errorf("%s, nameless %v: the topic holds %+v; swept %+v, erased %+v", name, nameless, r,
					s.mark.Swept, s.mark.Erased)
			}
		}
	}
}
