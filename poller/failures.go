package poller

import (
	"time"

	"go.uber.org/zap"
)

// Failures counts failures in a row, and logs each of them and their end. It does not thin them out: the
// logger does that, for every warning of the program alike, and says how many it swallowed.
type Failures struct {
	Log *zap.Logger
	Now func() time.Time
	// N is how many there were in a row; Since is when they began, the zero time if there are none.
	N     int
	Since time.Time
}

// Note counts a try that ended with err. A nil error ends the row of failures.
func (f *Failures) Note(err error) {
	now := f.Now()
	if err == nil {
		if f.N > 0 {
			f.Log.Info("working again", zap.Int("failures", f.N), zap.Duration("after", now.Sub(f.Since)))
		}
		f.N, f.Since = 0, time.Time{}
		return
	}
	if f.N++; f.N == 1 {
		f.Since = now
	}
	f.Log.Error("failing", zap.Error(err), zap.Int("failures", f.N), zap.Time("since", f.Since))
}
