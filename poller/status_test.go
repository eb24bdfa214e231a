package poller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/storestream/storestream/schemas"
)

func TestAResourceIsBlockedByTheMetricWhileItsPollsAre(t *testing.T) {
	s := openShop(t, 0, nil)
	for _, step := range []struct {
		err     error
		blocked float64
	}{
		{errors.New("the database is down"), 0},
		{fmt.Errorf("read orders: %w", &BlockedError{What: "poll.memory is full"}), 1},
		{nil, 0},
	} {
		s.poller.board.change(func(s *Status) { s.Err = step.err })
		if got := testutil.ToFloat64(s.metrics.Resource("orders").Blocked); got != step.blocked {
			t.Errorf("%v: %v, expected %v", step.err, got, step.blocked)
		}
	}
}

// A sweep that fails for ever has begun at some time: that time is in the watermark, so restarts do not hide
// it.
func TestTheMetricSaysSinceWhenNoSweepHasEnded(t *testing.T) {
	s := openShop(t, 3, nil)
	swept := func() schemas.Instant {
		return schemas.Instant(1e6 * testutil.ToFloat64(s.metrics.Resource("orders").Swept))
	}
	if got := swept(); got != 0 {
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

// An alert for the lag would wake somebody for a load that takes its time.
func TestTheMetricSaysWhileTheFirstLoadIsNotFinished(t *testing.T) {
	s := newShop(t, noon)
	s.takeOver()
	for _, step := range []struct {
		asOf schemas.Instant
		want float64
	}{{schemas.MinInstant, 1}, {schemas.InstantOf(noon), 0}, {schemas.MinInstant, 1}} {
		s.poller.board.change(func(s *Status) { s.Watermark.AsOf = step.asOf })
		if got := testutil.ToFloat64(s.metrics.Resource("orders").FirstLoad); got != step.want {
			t.Errorf("as of %s: %v, expected %v", step.asOf, got, step.want)
		}
	}
}
