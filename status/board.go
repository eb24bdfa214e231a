// Package status is what a person looks at: the status page, /status.json, /metrics, /healthz and /readyz. It only observes: whoever
// knows something hands in a function that tells it, and nothing here decides anything.
package status

import (
	"context"
	"math"
	"sync"
	"time"
)

// Snapshot is what is known of this instance at one moment. Its JSON form is /status.json.
type Snapshot struct {
	Instance string    `json:"instance"`
	Group    string    `json:"group,omitzero"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"` // set by the Board
	// Waiting says what the whole instance waits for ("broker 127.0.0.1:9092: connection refused"); empty once it is a member of its group.
	Waiting   string     `json:"waiting,omitzero"`
	Resources []Resource `json:"resources"`
}

// Resource is what is known of one resource. A time that is not known is zero, and left out of the JSON.
type Resource struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// Owned: this instance polls it. Otherwise the rest is what this instance last heard, if anything.
	Owned bool `json:"owned"`
	// Owner is the instance that last wrote its watermark, "" where nothing is known.
	Owner string    `json:"owner,omitzero"`
	Doing string    `json:"doing,omitzero"` // "polling", "waiting", ...
	Since time.Time `json:"since,omitzero"` // of Doing
	// Passes counts the complete passes since this instance took it over.
	Passes  int       `json:"passes"`
	Settled time.Time `json:"settled,omitzero"`
	AsOf    time.Time `json:"as_of,omitzero"`
	// Good is the start of the last pass that met every change before it, and LagSeconds is Now minus it (set by the Board; absent
	// where no such pass is known).
	Good       time.Time `json:"-"`
	LagSeconds *float64  `json:"lag_seconds,omitempty"`
	// Rows counts the rows published in all; RowsPerSecond is over the last ten seconds (set by the Board).
	Rows          int64   `json:"rows"`
	RowsPerSecond float64 `json:"rows_per_second"`
	// Error is the failure that it is in, FailedSince when that began; Held says why it settles no further although polls succeed.
	Error       string    `json:"error,omitzero"`
	FailedSince time.Time `json:"failed_since,omitzero"`
	Held        string    `json:"held,omitzero"`
	Replaying   bool      `json:"replaying,omitzero"`
	DeadLetters int       `json:"dead_letters"`
	SeenBytes   int       `json:"seen_bytes"`
}

// Board asks for a Snapshot when somebody looks, and adds what follows from the clock. It is safe for concurrent use.
type Board struct {
	now func() time.Time

	mu       sync.Mutex
	provider func() Snapshot
	base     Snapshot // until there is a provider
	rates    map[string]*rate
}

// New is a board of an instance that is starting.
func New(instance, version string) *Board {
	now := time.Now
	return &Board{now: now, rates: map[string]*rate{},
		base: Snapshot{Instance: instance, Version: version, Started: now().UTC(), Waiting: "starting"}}
}

// Provide sets the function that tells what is known from now on. It must be safe for concurrent use, quick, and never wait for anything
// that may hang: /readyz asks it. Instance, Version, Started and Now may be left empty.
func (b *Board) Provide(provider func() Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.provider = provider
}

// Snapshot is what is known now.
func (b *Board) Snapshot() Snapshot {
	b.mu.Lock()
	provider, s := b.provider, b.base
	b.mu.Unlock()
	if provider != nil {
		s = provider()
		s.Instance, s.Version, s.Started = b.base.Instance, b.base.Version, b.base.Started
	}
	s.Now = b.now().UTC()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range s.Resources {
		r := &s.Resources[i]
		if !r.Good.IsZero() {
			lag := max(0, s.Now.Sub(r.Good).Seconds())
			r.LagSeconds = &lag
		}
		if rate := b.rates[r.Name]; rate != nil {
			r.RowsPerSecond = math.Round(10*rate.perSecond()) / 10
		}
	}
	if s.Resources == nil {
		s.Resources = []Resource{} // [] and not null, for whoever reads the JSON
	}
	return s
}

// Ready says whether every resource that this instance owns has completed a pass, and if not, which has not and why.
func (s Snapshot) Ready() (ok bool, why []string) {
	if s.Waiting != "" {
		return false, []string{"waiting: " + s.Waiting}
	}
	for _, r := range s.Resources {
		if !r.Owned || r.Passes > 0 {
			continue
		}
		reason := r.Name + ": no complete pass yet"
		if r.Error != "" {
			reason += ": " + r.Error
		} else if r.Doing != "" {
			reason += ": " + r.Doing
		}
		why = append(why, reason)
	}
	return len(why) == 0, why
}

// sample notes how many rows have been published, once a second, until ctx is done.
func (b *Board) sample(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		b.note(b.Snapshot())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (b *Board) note(s Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range s.Resources {
		if b.rates[r.Name] == nil {
			b.rates[r.Name] = &rate{}
		}
		b.rates[r.Name].add(s.Now, r.Rows, r.Owned)
	}
}
