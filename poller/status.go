package poller

import (
	"errors"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Status is what people may know of a poller.
type Status struct {
	// Doing says what it does now ("polling", "waiting", ...), Since when.
	Doing string
	Since time.Time
	// Watermark is what is true now. A transaction says so soon.
	Watermark watermark.Watermark
	// Good is the start of the last pass that met every change before it: lag is counted from it. MinInstant:
	// none yet.
	Good schemas.Instant
	// Complete counts the complete passes of this poller.
	Complete int
	// Held says why the resource settles no further, "" if it does.
	Held string
	// Err is the failure that it is in, nil if none; FailedSince when that began.
	Err         error
	FailedSince time.Time
	// Polls are the last ones of this poller, the newest last.
	Polls []Poll
	// DeadLetters is how many rows stand in the dead-letter topic. DedupBytes is what dedup takes.
	DeadLetters, DedupBytes int
	// Sweep is the sweep in hand. What the last one came to is in Watermark (LastSweep, Swept).
	Sweep SweepStatus
}

// SweepStatus is a sweep in hand, or one that failed and is tried again.
type SweepStatus struct {
	// Doing says what it does now ("reading", "looking again", ...), "" if there is none; Since when.
	Doing string
	Since time.Time
	// Rows of the source have been read so far, of about Of.
	Rows, Of int
	// Err is what the last try failed with, nil if nothing is wrong; Next is when it is tried again.
	Err  error
	Next time.Time
}

// board holds the status, safe for concurrent use, and sets the gauges by it. The gauges stay when the poller
// ends: until another instance is known to have the resource, nobody else tells them.
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
	b.metrics.LettersHeld.Set(float64(s.DeadLetters))
	b.metrics.SeenBytes.Set(float64(s.DedupBytes))
	b.metrics.SettlingHeld.Set(metrics.Bool(s.Held != ""))
	b.metrics.Held.Set(metrics.Bool(errors.As(s.Err, new(*HoldError))))
	b.metrics.FirstLoad.Set(metrics.Bool(s.Watermark.AsOf == schemas.MinInstant))
	b.metrics.SweepLeft.Set(metrics.Bool(s.Watermark.SweepLeft()))
	b.metrics.SetSweepFound(s.Watermark.SweepFound())
	if settled := s.Watermark.Settled; settled != schemas.MinInstant {
		b.metrics.Settled.Set(float64(settled) / 1e6)
	}
	if swept := s.Watermark.SweptSince(); swept != schemas.MinInstant {
		b.metrics.Swept.Set(float64(swept) / 1e6)
	}
	if s.Good != schemas.MinInstant {
		s.Good = min(s.Good, b.clock()) // the clock stepped back: lag counts from now on at least
		b.metrics.Lag.Since(s.Good.Time())
	}
}

// sweeping shows what the sweep in hand does; "": there is none.
func (b *board) sweeping(doing string) {
	b.change(func(s *Status) {
		if doing == "" {
			s.Sweep = SweepStatus{}
		} else if s.Sweep.Doing != doing {
			s.Sweep = SweepStatus{Doing: doing, Since: b.now(), Rows: s.Sweep.Rows, Of: s.Sweep.Of}
		}
	})
}
