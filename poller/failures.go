package poller

import (
	"time"

	"go.uber.org/zap"
)

// Failures logs a failure when it begins, then once a minute with a count, and its end: a service that is down all night leaves some
// hundred lines, not a hundred thousand.
type Failures struct {
	Log *zap.Logger
	Now func() time.Time
	// N counts the failures in a row, Since is when they began.
	N     int
	Since time.Time

	logged time.Time
	quiet  int // since the last line
}

const repeatEvery = time.Minute

// Note takes how a try ended; nil ends the failure.
func (f *Failures) Note(err error) {
	now := f.Now()
	if err == nil {
		if f.N > 0 {
			f.Log.Info("working again", zap.Int("failures", f.N), zap.Duration("after", now.Sub(f.Since)))
		}
		f.N, f.quiet, f.logged = 0, 0, time.Time{}
		return
	}
	if f.N++; f.N == 1 {
		f.Since = now
	}
	f.quiet++
	if now.Sub(f.logged) >= repeatEvery {
		f.Log.Error("failing", zap.Error(err), zap.Int("failures", f.N), zap.Int("since_last_line", f.quiet), zap.Time("since", f.Since))
		f.quiet, f.logged = 0, now
	}
}
