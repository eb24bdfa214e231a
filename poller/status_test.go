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
