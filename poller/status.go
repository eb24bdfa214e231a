package poller

import (
	"errors"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Status is the state of a poller, for people.
type Status struct {
	// Doing is its present activity ("polling", "waiting"), and Since its beginning.
	Doing string
	Since time.Time
	// Watermark is the one that the next transaction writes.
	Watermark watermark.Watermark
	// Good is the start of the last pass that met every change before it: lag is counted from it.
	// MinInstant: none yet.
	Good schemas.Instant
	// Complete counts the complete passes of this poller.
	Complete int
	// Delayed is the reason why settling is delayed, "" if it is not.
	Delayed string
	// Err is the failure that it is in, nil if none; FailedSince when that began.
	Err         error
	FailedSince time.Time
	// DeadLetters is how many rows stand in the dead-letter topic. DedupBytes is what dedup takes.
	DeadLetters, DedupBytes int
	// Sweep is the sweep in hand. The result of the last one is in Watermark (LastSweep, Swept).
	Sweep SweepStatus
}

// SweepStatus is a sweep in hand, or one that failed and is tried again.
type SweepStatus struct {
	// Doing is its present activity ("reading", "looking again"), "" if there is no sweep, and Since its
	// beginning.
	Doing string
	Since time.Time
	// Rows of the source have been read so far, of about Of.
	Rows, Of int
	// Err is the error of the last try, or nil. Next is the time of the next try.
	Err  error
	Next time.Time
}

// board holds the status, safe for concurrent use, and sets the gauges by it. The gauges stay when the
// poller ends: until another instance is known to have the resource, no other sets them.
type board struct {
	now     func() time.Time
	clock   func() schemas.Instant
	metrics *metrics.Resource
	mu      sync.Mutex
	status  Status
}

func newBoard(cfg *Config, mark *watermark.Watermark) *board {
	return &board{now: cfg.now, clock: cfg.wall, metrics: cfg.Metrics, status: Status{Doing: "starting",
		Since: cfg.now(), Good: mark.KnownAsOf(cfg.wall())}}
}

func (b *board) get() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

func (b *board) change(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.status
	change(s)
	b.metrics.LettersInTopic.Set(float64(s.DeadLetters))
	b.metrics.DedupBytes.Set(float64(s.DedupBytes))
	b.metrics.SettlingDelayed.Set(metrics.Bool(s.Delayed != ""))
	b.metrics.Blocked.Set(metrics.Bool(errors.As(s.Err, new(*BlockedError))))
	b.metrics.SetWatermark(&s.Watermark)
	if s.Good != schemas.MinInstant {
		s.Good = min(s.Good, b.clock()) // the clock stepped back: lag counts from now on at least
		b.metrics.Lag.Since(s.Good.Time())
	}
}

// sweeping shows the activity of the sweep in hand, "" if there is none.
func (b *board) sweeping(doing string) {
	b.change(func(s *Status) {
		if doing == "" {
			s.Sweep = SweepStatus{}
		} else if s.Sweep.Doing != doing {
			s.Sweep = SweepStatus{Doing: doing, Since: b.now(), Rows: s.Sweep.Rows, Of: s.Sweep.Of}
		}
	})
}
