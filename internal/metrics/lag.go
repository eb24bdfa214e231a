package metrics

import (
	"sync"
	"time"
)

// Lag is how far one resource is behind. It is safe for concurrent use.
type Lag struct {
	mu    sync.Mutex
	start time.Time
}

// Since notes that a pass which began at start met every change made before it. The lag counts from there on.
// A new owner calls it with the watermark's as_of, so the lag goes on through a handover.
func (l *Lag) Since(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = start
}

// Begin counts from start if no pass is known: a resource is as far behind as an instance has been trying.
func (l *Lag) Begin(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.IsZero() {
		l.start = start
	}
}

// Forget ends the samples: another instance has the resource, and reports its lag. Call it only when that is
// known. While no instance polls, one must go on reporting for how long.
func (l *Lag) Forget() { l.Since(time.Time{}) }

// Start returns when the last such pass began, or the zero time if unknown.
func (l *Lag) Start() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}
