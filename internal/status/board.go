// Package status shows an instance to a person: the status page, /status.json, /metrics, /healthz and
// /readyz. It only observes: the instance hands in a function that returns its state, and package health
// judges it.
package status

import (
	"context"
	"maps"
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

	mu        sync.Mutex
	provider  func() Snapshot
	base      Snapshot           // until there is a provider
	published map[string]*series // by resource
	requests  map[string]*series // by resource
	history   History
	steps     int // of the history
}

// New is a board of an instance that is starting.
func New(instance, version string) *Board {
	return &Board{
		now: time.Now, feed: newFeed(), published: map[string]*series{}, requests: map[string]*series{},
		history: History{StepSeconds: historyStep, RowsPerSecond: map[string][]*float64{}},
		base:    Snapshot{Instance: instance, Version: version, Started: time.Now().UTC(), Waiting: "starting"},
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

// Snapshot returns the current Snapshot, without History and Latest.
func (b *Board) Snapshot() Snapshot {
	s := b.ask()
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := 0.
	for i := range s.Resources {
		r := &s.Resources[i]
		r.RowsPerSecond = b.published[r.Name].perSecond()
		r.RequestsPerSecond = b.requests[r.Name].perSecond()
		requests += r.RequestsPerSecond
	}
	if s.Service != nil {
		s.Service.RequestsPerSecond = requests
	}
	return s
}

// ask returns the provider's Snapshot, and has its resources judged.
func (b *Board) ask() Snapshot {
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
	h, _ := b.History()
	s.History = &h
	return s
}

// History is the last hour, and a number that changes with it.
func (b *Board) History() (h History, version int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h = b.history
	h.RowsPerSecond = maps.Clone(h.RowsPerSecond)
	return h, b.steps
}

// sample asks the provider once a second, for rates and history, until ctx is done.
func (b *Board) sample(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for seconds := 0; ; seconds++ {
		b.note(b.ask(), seconds > 0 && seconds%historyStep == 0)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// note remembers s. With step it is a point of the history too.
func (b *Board) note(s Snapshot, step bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range s.Resources {
		if b.published[r.Name] == nil {
			// The process began with nothing. So what happened before the first look belongs to the first seconds.
			b.published[r.Name] = &series{{at: b.base.Started}}
			b.requests[r.Name] = &series{{at: b.base.Started}}
		}
		b.published[r.Name].add(s.Now, r.Published)
		sent := int64(0)
		for _, n := range r.Requests {
			sent += n
		}
		b.requests[r.Name].add(s.Now, sent)
		if step {
			b.history.add(r.Name, b.published[r.Name].perSecond(), r.Owned)
		}
	}
	if step {
		b.history.End = s.Now
		b.steps++
	}
}
