package poller

import (
	"sync"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
)

// Status is the state of a poller, for people.
type Status struct {
	// Doing is its present activity ("polling", "waiting"), and Since its beginning.
	Doing string
	Since time.Time
	// Watermark is the one that the next transaction writes.
	Watermark watermark.Watermark
	// Complete counts the complete passes of this poller.
	Complete int
	// Delayed is the reason why settling is delayed, "" if it is not.
	Delayed string
	// Err is the failure that it is in, nil if none; FailedSince when that began.
	Err         error
	FailedSince time.Time
	// DedupBytes is the memory that dedup takes.
	DedupBytes int
	// Sweep is the sweep in hand, zero if there is none. The result of the last one is in Watermark (LastSweep,
	// Swept).
	Sweep health.Sweeping
}

// board holds the status, safe for concurrent use.
type board struct {
	now    func() time.Time
	mu     sync.Mutex
	status Status
}

func newBoard(cfg *Config) *board {
	return &board{now: cfg.now, status: Status{Doing: "starting", Since: cfg.now()}}
}

func (b *board) get() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

func (b *board) change(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.status)
}

// sweeping shows the activity of the sweep in hand, "" if there is none.
func (b *board) sweeping(doing string) {
	b.change(func(s *Status) {
		if doing == "" {
			s.Sweep = health.Sweeping{}
		} else if s.Sweep.Doing != doing {
			s.Sweep = health.Sweeping{Doing: doing, Since: b.now(), Rows: s.Sweep.Rows, Of: s.Sweep.Of}
		}
	})
}
