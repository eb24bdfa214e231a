package poller

import (
	"time"

	"go.uber.org/zap"
)

// Failures counts failures in a row, and logs each and the end of them. It does not thin them out: that is
// the logger's, which does it for every warning of the program alike and says how many it swallowed (see
// cmd/storestream/internal/logging).
type Failures struct {
	Log *zap.Logger
	Now func() time.Time
	// N counts the failures in a row, Since is when they began.
	N     int
	Since time.Time
}

// Note takes how a try ended; nil ends the failure.
func (f *Failures) Note(err error) {
	now := f.Now()
	if err == nil {
		if f.N > 0 {
			f.Log.Info("working again", zap.Int("failures", f.N), zap.Duration("after", now.Sub(f.Since)))
		}
		f.N = 0
		return
	}
	if f.N++; f.N == 1 {
		f.Since = now
	}
	f.Log.Error("failing", zap.Error(err), zap.Int("failures", f.N), zap.Time("since", f.Since))
}
