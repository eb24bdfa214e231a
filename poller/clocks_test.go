package poller

import (
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// aheadForOnePoll lets the poller's clock be ahead for one poll.
func (s *shop) aheadForOnePoll(by time.Duration) {
	s.t.Helper()
	s.skew = by
	s.poll()
	s.skew = 0
}

// `run --once` and lag go by as of. One from the future would say for an hour that all is up to date.
func TestAnAsOfFromTheFutureIsReplacedByTheNextPass(t *testing.T) {
	s := openShop(t, 3, func(c *Config) { c.Eager = true })
	s.aheadForOnePoll(time.Hour)
	if s.mark.AsOf <= s.now {
		t.Fatal("the clock was not ahead")
	}
	s.takeOver()
	s.now = s.now.Add(time.Minute)
	s.poll()
	if s.mark.AsOf != s.now || s.mark.FreshAsOf != s.now {
		t.Errorf("as of %s, fresh as of %s; it is %s", s.mark.AsOf, s.mark.FreshAsOf, s.now)
	}
}

// The clock steps back in the middle of a pass that takes long: as of is when it began.
func TestAPassDuringWhichTheClockStepsBackBeganAsLongAgoAsItTook(t *testing.T) {
	s := openShop(t, 3, nil)
	p := s.poller
	s.skew = time.Hour
	r := p.state.nextPass(p.cfg.Clock())
	began := s.now
	s.now, s.skew = s.now.Add(10*time.Minute), 0
	err := p.publish(one(Batch{Settled: schemas.MinInstant,
		Done: &Done{Started: r.Started, Complete: true}}))
	if err != nil || p.state.mark.AsOf != began {
		t.Errorf("as of %s, the pass began at %s; %v", p.state.mark.AsOf, began, err)
	}
}

// A cheap pass may have skipped a change: it shows that the source answers, and not that all is published.
func TestOnlyACompletePassMovesAsOf(t *testing.T) {
	s := openShop(t, 3, nil)
	p, before := s.poller, s.mark.AsOf
	for _, complete := range []bool{false, true} {
		s.now = s.now.Add(time.Minute)
		r, want := p.state.nextPass(p.cfg.Clock()), before
		if complete {
			want = s.now
		}
		done := &Done{Started: r.Started, Complete: complete}
		if err := p.publish(one(Batch{Settled: schemas.MinInstant, Done: done})); err != nil {
			t.Fatal(err)
		}
		if mark := p.state.mark; mark.AsOf != want || mark.FreshAsOf != s.now {
			t.Errorf("complete %v: as of %s, expected %s; fresh as of %s, it is %s", complete, mark.AsOf, want,
				mark.FreshAsOf, s.now)
		}
	}
}

func TestASweepThatEndedInTheFuturePutsOffNone(t *testing.T) {
	s := openShop(t, 3, func(c *Config) { c.Sweep.Interval = 24 * time.Hour })
	s.skew = 10 * 365 * 24 * time.Hour
	s.sweep()
	s.skew = 0
	if s.mark.LastSweep <= s.now {
		t.Fatal("the clock was not ahead")
	}
	for _, successor := range []bool{false, true} {
		if successor {
			s.takeOver()
		}
		last := s.mark.LastSweep
		for range 3 * 24 {
			s.poll()
			s.now = s.now.Add(time.Hour)
		}
		if s.mark.LastSweep == last {
			t.Errorf("no sweep within three days, the last one is of %s", last)
		}
		s.mark.LastSweep = schemas.InstantOf(noon.Add(10 * 365 * 24 * time.Hour))
	}
}

func TestADeathThatWasNotedByAClockAheadPutsOffASweepByNoMoreThanOthers(t *testing.T) {
	s := openShop(t, 3, nil)
	id := s.askSweep()
	s.poll() // begun
	s.skew = 365 * 24 * time.Hour
	s.takeOver() // it died
	s.skew = 0
	began := s.now
	s.poll()
	for s.mark.Request < id || s.mark.Sweep != nil {
		s.poll()
		if s.now = s.now.Add(time.Hour); s.now.Sub(began) > lastSweepBackoff+10*time.Hour {
			t.Fatalf("the sweep waits until %s, it is %s", s.mark.Sweep.NotBefore, s.now)
		}
	}
}

// The clock was ahead when a reset was accepted.
func TestAReplayEndsWithItsFirstCompletePassWhateverTheClockSays(t *testing.T) {
	s := openShop(t, 3, nil)
	to := schemas.MinInstant
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	s.aheadForOnePoll(time.Hour) // accepts it
	s.poll()
	if s.mark.Replay != nil || len(s.topic) != 6 {
		t.Errorf("%d records of 3 rows and a replay of them, which is %+v", len(s.topic), s.mark.Replay)
	}
}

// A predecessor whose clock was ahead died in the middle of a pass. When that pass began nobody knows: not
// when the successor went on, because rows behind the cursor may have changed between.
func TestAPassThatGoesOnFromACursorOfAClockThatWasAheadDoesNotMoveAsOf(t *testing.T) {
	s := openShop(t, 3, nil)
	asOf, ahead := s.mark.AsOf, s.now.Add(time.Hour)
	s.takeOver()
	p := s.poller
	s.now = s.now.Add(10 * time.Minute)
	p.state.nextPass(p.cfg.Clock())
	done := &Done{Started: ahead, Complete: true}
	err := p.publish(one(Batch{Settled: s.now.Add(-shopOverlap), Done: done}))
	if err != nil || p.state.mark.AsOf != asOf {
		t.Errorf("as of %s, expected %s as before; %v", p.state.mark.AsOf, asOf, err)
	}
	if fresh := p.state.mark.FreshAsOf; fresh > asOf {
		t.Errorf("fresh as of %s", fresh)
	}
}
