package poller

import (
	"errors"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

// A sweep that fails for ever has begun at some time: that time is in the watermark, so restarts do not hide
// it.
func TestTheWatermarkSaysSinceWhenNoSweepHasEnded(t *testing.T) {
	s := openShop(t, 3, nil)
	swept := func() schemas.Instant { return s.mark.SweptSince() }
	if got := swept(); got != schemas.MinInstant {
		t.Errorf("%s, and none is due", got)
	}
	s.err = errors.New("the service ends in the middle")
	s.askSweep()
	asked := s.now
	for range 3 {
		s.poll()
		s.now = s.now.Add(time.Hour)
		s.takeOver()
	}
	if got := swept(); got != asked {
		t.Errorf("%s, one is due since %s", got, asked)
	}
	s.err = nil
	if s.sweep(); swept() != s.mark.LastSweep {
		t.Errorf("%s, the last one ended at %s", swept(), s.mark.LastSweep)
	}
}

// The first load may take long: the watermark says which request failed before its first pass has ended.
func TestTheWatermarkSaysWhichRequestOfTheFirstLoadFails(t *testing.T) {
	s := openShop(t, 3, nil)
	state, at := s.poller.state, s.poller.cfg.Clock()
	failed := Batch{Settled: schemas.MinInstant, Failed: "answered 500"}
	state.mark.AsOf = schemas.MinInstant
	state.advance(&failed, at, 0)
	told := state.mark.Trouble
	if told == nil || told.Why != "answered 500" || told.SettlingDelayed() || told.Blocked() {
		t.Errorf("%+v", told)
	}
	state.advance(&Batch{Settled: schemas.MinInstant, Done: &Done{Started: at.Wall, Complete: true}}, at, 0)
	if state.mark.Trouble != nil {
		t.Errorf("after the pass: %+v", state.mark.Trouble)
	}
	if state.advance(&failed, at, 0); state.mark.Trouble != nil {
		t.Errorf("in a later pass: %+v", state.mark.Trouble)
	}
}

// People wait for a first load, so its first failure is in the watermark.
func TestTheFirstFailureOfAFirstLoadIsInTheWatermark(t *testing.T) {
	s := openShop(t, 3, nil)
	for as, told := range map[schemas.Instant]bool{schemas.MinInstant: true, s.clock(): false} {
		s.poller.state.mark.AsOf, s.poller.state.mark.Trouble = as, nil
		if err := s.poller.writer.reportFailure(errors.New("answered 500"), s.poller.cfg.Clock().Now); err != nil {
			t.Fatal(err)
		}
		if got := s.poller.state.mark.Trouble; (got != nil) != told || told && !got.Failing {
			t.Errorf("as of %s: %+v", as, got)
		}
	}
}
