// Package status shows an instance to a person: the status page, /status.json, /metrics, /healthz and
// /readyz. It only observes. Whoever knows something hands in a function that says it, and nothing here
// decides anything.
package status

import (
	"context"
	"math"
	"sync"
	"time"

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
	memory   map[string]*memory
	requests rate // of all resources
	history  history
}

// memory is the board's state of one resource from one second to the next.
type memory struct {
	rows, requests rate
	pace           pace
	sweeps         []Sweep // that ended while this instance ran, and the one before; the newest last
}

// New is a board of an instance that is starting.
func New(instance, version string) *Board {
	return &Board{
		now: time.Now, feed: newFeed(), memory: map[string]*memory{}, history: newHistory(),
		base: Snapshot{Instance: instance, Version: version, Started: time.Now().UTC(), Waiting: "starting"},
	}
}

// Provide sets the function that returns Snapshots from now on. It must be safe for concurrent use and quick,
// and must never wait for anything that may hang, because /readyz calls it. Instance, Version, Started and
// Now may be left empty.
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
	for i := range s.Resources {
		r := &s.Resources[i]
		if !r.Good.IsZero() {
			lag := max(0, s.Now.Sub(r.Good).Seconds())
			r.LagSeconds = &lag
		}
		r.State = r.state()
		m := b.memory[r.Name]
		if m == nil {
			continue
		}
		r.RowsPerSecond = tenth(m.rows.perSecond())
		if r.Requests != nil {
			r.Requests.PerSecond = tenth(m.requests.perSecond())
		}
		if r.Progress != nil {
			r.Progress.estimate(s.Now, &m.pace)
		}
	}
	if s.Service != nil {
		s.Service.RequestsPerSecond = tenth(b.requests.perSecond())
	}
	return s
}

// ask returns the provider's Snapshot.
func (b *Board) ask() Snapshot {
	b.mu.Lock()
	provider, s := b.provider, b.base
	b.mu.Unlock()
	if provider != nil {
		s = provider()
		s.Instance, s.Version, s.Started = b.base.Instance, b.base.Version, b.base.Started
	}
	s.Now = b.now().UTC()
	if s.Resources == nil {
		s.Resources = []Resource{} // in the JSON [] and not null
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
	return b.history.show(), b.history.version
}

// sample asks the provider once a second, for rates, pace and history, until ctx is done.
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
	requests := int64(0)
	for _, r := range s.Resources {
		m := b.memory[r.Name]
		if m == nil {
			// The process began with no rows. So the rows before the first look belong to the first seconds.
			m = &memory{}
			m.rows.add(b.base.Started, 0)
			m.requests.add(b.base.Started, 0)
			b.memory[r.Name] = m
		}
		m.rows.add(s.Now, r.Published)
		m.sweeps = addSweep(m.sweeps, r.Sweep)
		if r.Requests != nil {
			m.requests.add(s.Now, r.Requests.Total)
			requests += r.Requests.Total
		}
		if r.Progress != nil {
			m.pace.add(s.Now, r.Progress.At)
		} else {
			m.pace = pace{}
		}
		if step {
			b.history.add(r.Name, tenth(m.rows.perSecond()), r.Owned)
		}
	}
	b.requests.add(s.Now, requests)
	if step {
		b.history.end(s.Now)
	}
}

func tenth(n float64) float64 { return math.Round(10*n) / 10 }
