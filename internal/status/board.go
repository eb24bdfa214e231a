// Package status shows an instance to a person: the status page, /status.json, /metrics, /healthz and
// /readyz. It only observes: the instance hands in a function that returns its state, and package health
// judges it.
package status

import (
	"sync"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/schemas"
)

// Board asks for a Snapshot when it is read, and adds the values that depend on the clock. It is safe for
// concurrent use. It lives as long as the process.
type Board struct {
	now  func() time.Time
	feed feed

	mu       sync.Mutex
	provider func() Snapshot
	base     Snapshot // until there is a provider
}

// New is a board of an instance that is starting.
func New(instance, version string) *Board {
	return &Board{
		now: time.Now, feed: feed{last: map[string]time.Time{}},
		base: Snapshot{Instance: instance, Version: version, Started: time.Now().UTC(), Waiting: "starting"},
	}
}

// Provide sets the function that returns Snapshots from now on. It must be safe for concurrent use and quick,
// and must never wait for anything that may hang, because /readyz calls it. Instance, Version, Started and
// Now may be left empty, and so may all that health.Resource.Judge sets.
func (b *Board) Provide(provider func() Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.provider = provider
}

// ShowValues has the latest upserts shown with their values. Without it their ids and times are. Call it
// before anything is published.
func (b *Board) ShowValues() { b.feed.values = true }

// Published notes the rows of a committed transaction. It does not keep their memory.
func (b *Board) Published(r *schemas.Resource, rows []schemas.Record, deleted []int64) {
	if len(rows) > 0 || len(deleted) > 0 {
		b.feed.note(b.now(), r, rows, deleted)
	}
}

// Snapshot returns the current Snapshot, without Latest, and has its resources judged.
func (b *Board) Snapshot() Snapshot {
	b.mu.Lock()
	provider, s := b.provider, b.base
	b.mu.Unlock()
	if provider != nil {
		s = provider()
		s.Instance, s.Version, s.Started = b.base.Instance, b.base.Version, b.base.Started
	}
	s.Now = b.now().UTC()
	for i := range s.Resources {
		r := &s.Resources[i]
		if r.Owned || r.Now == 0 {
			r.Now = schemas.InstantOf(s.Now)
		}
		r.Judge()
	}
	if s.Resources == nil {
		s.Resources = []health.Resource{} // in the JSON [] and not null
	}
	return s
}

// Document is all that the page shows.
func (b *Board) Document() Snapshot {
	s := b.Snapshot()
	s.Latest, _ = b.feed.latest()
	return s
}
