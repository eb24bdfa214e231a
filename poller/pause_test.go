package poller

import (
	"context"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
)

func TestAPausedResourcePublishesNothingAndStaysAlive(t *testing.T) {
	s := openShop(t, 5, func(c *Config) { c.Sweep.Tombstone = true })
	before := len(s.topic)
	s.ask(watermark.Request{Kind: watermark.Pauses, Why: "a migration", By: "bob@shop"})
	s.rows[3] = s.row(3, time.Minute, 2)
	delete(s.rows, 4)
	s.askSweep()
	s.erase(4)
	s.replay(-2*time.Hour, time.Hour)
	for range 10 { // a takeover does not end it
		s.pollFor(time.Minute)
		if since := s.now.Sub(s.mark.Written); len(s.topic) > before || since > 2*idleWrite {
			t.Fatalf("%d records, the watermark is from %s ago", len(s.topic)-before, since)
		}
		s.takeOver()
	}
	if p := s.mark.Pause; p == nil || p.Until != nil || p.Why != "a migration" || p.By != "bob@shop" {
		t.Errorf("%+v", p)
	}
	if s.full+len(s.lookups) > 0 {
		t.Errorf("%d full readings, %d lookups", s.full, len(s.lookups))
	}
	s.ask(watermark.Request{Kind: watermark.Resumes})
	s.pollFor(5 * time.Minute)
	s.wants(s.rows[3])
	if s.mark.Pause != nil || s.mark.Swept == nil || len(s.mark.Erased) != 1 || s.result() == nil {
		t.Errorf("after it: %+v", s.mark)
	}
}

func TestAPauseEndsByItself(t *testing.T) {
	s := openShop(t, 5, nil)
	until := s.now.Add(10 * time.Minute)
	s.ask(watermark.Request{Kind: watermark.Pauses, To: &until})
	s.poll()
	s.rows[3] = s.row(3, time.Minute, 2)
	s.pollFor(9 * time.Minute)
	if r, _ := s.newest(3); r.Hash == s.rows[3].hash() {
		t.Error("the row is published in the pause")
	}
	s.pollFor(2 * time.Minute)
	s.wants(s.rows[3])
	if s.mark.Pause != nil {
		t.Errorf("%+v", s.mark.Pause)
	}
}

func TestRunRestsInAPause(t *testing.T) {
	s := openShop(t, 1, func(c *Config) { c.Interval = time.Millisecond })
	s.rows[7] = s.row(7, 0, 1)
	s.mark.Pause = &watermark.Pause{By: "bob@shop"}
	ctx, stop := context.WithCancelCause(t.Context())
	rests := 0
	s.config.Doing = func(activity string) {
		if activity != "paused" {
			t.Errorf("it is %s", activity)
		}
		if rests++; rests == 3 {
			stop(ErrStopping)
		}
	}
	s.takeOver()
	if err := s.poller.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, there := s.newest(7); there {
		t.Error("it publishes in the pause")
	}
}

// Its reading would go on for hours, and it would ask the service although nobody is to.
func TestAPauseEndsTheSweepInHand(t *testing.T) {
	s := openShop(t, 5, nil)
	s.askSweep()
	s.poll()
	if s.poller.sweeper.inHand == nil {
		t.Fatal("no sweep is in hand")
	}
	s.ask(watermark.Request{Kind: watermark.Pauses})
	s.poll()
	if s.poller.sweeper.inHand != nil || s.mark.Sweep == nil || s.mark.Sweep.Tried != nil {
		t.Errorf("in hand is %+v, the watermark says %+v", s.poller.sweeper.inHand, s.mark.Sweep)
	}
}
