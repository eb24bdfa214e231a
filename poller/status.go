package poller

import (
	"sync"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
)

// Status is the state of a poller, for people.
type Status struct {
	// Watermark is the one that the next transaction writes.
	Watermark watermark.Watermark
	// Complete counts the complete passes of this poller.
	Complete int
	// Trouble is why the resource is blocked, fails, waits or settles no further, as this poller has found.
	// The one in Watermark may be a predecessor's. The first failures are not in it (Err).
	Trouble *watermark.Trouble
	// Err is the failure that it is in, nil if none; FailedSince when that began.
	Err         error
	FailedSince time.Time
	// DedupBytes is the memory that dedup takes.
	DedupBytes int
	// Sweep is the sweep in hand. The result of the last one is in Watermark (LastSweep, Swept).
	Sweep health.Sweeping
}

// board holds the status, safe for concurrent use.
type board struct {
	now    func() time.Time
	mu     sync.Mutex
	status Status
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
			s.Sweep = health.Sweeping{Doing: doing, Since: b.now().UTC(), Rows: s.Sweep.Rows, Of: s.Sweep.Of}
		}
	})
}
