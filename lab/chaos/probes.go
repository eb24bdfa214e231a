package main

import (
	"context"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// probes change one row of each resource, wait until the topic shows it, and change it again: how long each
// change was on its way says how long the resource stood still, and from when on it was well again after a
// mishap.
type probes struct {
	around  *surroundings
	load    *load
	tail    *tail
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}
	trips   map[string][]trip
}

// trip is one change's way from the service to the topic.
type trip struct{ made, visible time.Time }

// probePause is longer than the second that REST keeps of an instant.
const probePause = 1100 * time.Millisecond

func newProbes(around *surroundings, l *load, t *tail) *probes {
	return &probes{around: around, load: l, tail: t, changed: make(chan struct{}), trips: map[string][]trip{},
		cancel: func() {}}
}

func (p *probes) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	for _, resource := range storefake.Names() {
		p.running.Go(func() { p.run(ctx, resource) })
	}
}

func (p *probes) stop() {
	p.cancel()
	p.running.Wait()
}

func (p *probes) run(ctx context.Context, resource string) {
	id := int64(0)
	for ctx.Err() == nil {
		made := time.Now()
		at, err := p.change(ctx, resource, &id)
		if err == nil && p.visible(ctx, resource, id, at) {
			p.note(resource, trip{made, time.Now()})
		}
		select {
		case <-ctx.Done():
		case <-time.After(probePause):
		}
	}
}

// change updates the probe's row, or inserts a new one if it is missing. It returns the updated_at that the
// topic will show.
func (p *probes) change(ctx context.Context, resource string, id *int64) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	fake := p.around.fake
	if _, there := fake.Row(resource, *id); !there {
		var err error
		if *id, err = fake.Insert(ctx, resource, p.load.newRow(resource)); err != nil {
			*id = 0
			return time.Time{}, err
		}
	} else if err := p.load.touch(ctx, resource, *id); err != nil {
		return time.Time{}, err
	}
	row, there := fake.Row(resource, *id)
	if !there {
		return time.Time{}, context.Canceled // deleted by the shop in this moment
	}
	return p.around.shown(resource, row.Time("updated_at")), nil
}

// visible waits until the topic has the row with that updated_at or a later one. It returns false if the row
// was deleted, or went back in a restore, or ctx is done.
func (p *probes) visible(ctx context.Context, resource string, id int64, at time.Time) bool {
	for {
		more := p.tail.more()
		if r, there := p.tail.find(resource, id); there && r.millis >= at.UnixMilli() {
			return true
		}
		row, there := p.around.fake.Row(resource, id)
		if !there || p.around.shown(resource, row.Time("updated_at")).Before(at) {
			return false
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

func (p *probes) note(resource string, t trip) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trips[resource] = append(p.trips[resource], t)
	close(p.changed)
	p.changed = make(chan struct{})
}

// recovered is the first instant at which every resource showed a change made after since. If a resource
// lacks one, at is zero and missing names it.
func (p *probes) recovered(since time.Time) (at time.Time, missing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, resource := range storefake.Names() {
		visible := time.Time{}
		for _, t := range p.trips[resource] {
			if t.made.After(since) {
				visible = t.visible
				break
			}
		}
		if visible.IsZero() {
			return time.Time{}, resource
		}
		if visible.After(at) {
			at = visible
		}
	}
	return at, ""
}

// longest is the longest trip of a resource, the first apart: that one waits for the first load.
func (p *probes) longest(resource string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := time.Duration(0)
	for n, t := range p.trips[resource] {
		if n > 0 {
			longest = max(longest, t.visible.Sub(t.made))
		}
	}
	return longest
}

// wait returns nil once a change made after since is visible in every resource.
func (p *probes) wait(ctx context.Context, since time.Time) (missing string, err error) {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if _, missing = p.recovered(since); missing == "" {
			return "", nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return missing, context.Cause(ctx)
		}
	}
}
