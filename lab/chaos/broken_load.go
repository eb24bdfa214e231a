package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

const (
	byStop           = "SIGSTOP"
	byKillAndRewrite = "kill -9 and CLUSTER"
	// loadPatience bounds the wait for the middle of a load, also of the first one, or of a replay.
	loadPatience = 20 * time.Second
)

// brokenLoad takes the owner from a table in the middle of its load. The successor has to go on at the place
// in the watermark, or to begin again if the table was rewritten meanwhile. A plan begins with one, of the
// first load.
var brokenLoad = &kind{name: "load broken off by", weight: 5, hits: everyInstance, also: theBroker,
	least: 0, most: 10 * time.Second, needs: overLargeTables,
	details: func(d draw, p *plan, e *event) {
		anyTable(d, p, e)
		e.back = 3000 * wholeDay
		if e.how = oneOf(d, byKill, byKill, byTerm, byStop, byKillAndRewrite); e.how == byStop {
			e.length += 10 * time.Second // longer than the session
		}
	},
	do: func(ctx context.Context, s *stage, e event) (undo func() error, err error) {
		var ask func(context.Context) // nil while the first load is still to come
		if _, began := s.tail.lastMark(e.resources[0]); began {
			ask = func(ctx context.Context) { _, _ = reset(ctx, s, e) }
		}
		undo, err = loseOwner(ctx, s, e, ask, func(m *mark) bool {
			s.load.commitAll() // a load begins beside no older transaction
			return m.Load.inside()
		})
		if m, _ := s.tail.lastMark(e.resources[0]); err == nil && m.Load != nil {
			s.journal.say("%s has loaded %d of %d blocks of %s", m.Instance, m.Load.Block, m.Load.Blocks,
				e.resources[0])
		}
		if err == nil && e.how == byKillAndRewrite {
			if err := rewriteTable(ctx, s, byCluster, e.resources[0]); err != nil {
				s.journal.say("%v", err)
			}
		}
		return undo, err
	}}

// loseOwner takes the owner from a resource in the middle of something: while inside is true of its newest
// watermark. e.how says how, and when the event is over the instance is back. ask, if not nil, asks for that
// something. Kafka is far away until then: otherwise it takes a tenth of a second.
func loseOwner(ctx context.Context, s *stage, e event, ask func(context.Context),
	inside func(*mark) bool) (undo func() error, err error) {
	if err := toBroker(s).poison(toxic{"latency", downstream, 100}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, toBroker(s).repair()) }()
	var asking sync.WaitGroup
	defer asking.Wait() // it may be over before the command is
	if ask != nil {
		asking.Go(func() { ask(ctx) })
	}
	owner, err := awaitInside(ctx, s, e.resources[0], inside)
	if err != nil {
		return nil, err
	}
	over, back := time.Now().Add(e.length), owner.start
	switch e.how {
	case byTerm:
		owner.terminate()
	case byStop:
		err, back = owner.signal(syscall.SIGSTOP), func() error { return owner.signal(syscall.SIGCONT) }
	default:
		err = owner.kill()
	}
	return func() error { until(ctx, over); return back() }, err
}

// awaitInside waits until inside is true of the resource's newest watermark, and returns the owner.
func awaitInside(ctx context.Context, s *stage, resource string, inside func(*mark) bool) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	for again := time.Tick(100 * time.Millisecond); ; {
		more := s.tail.more()
		m, _ := s.tail.lastMark(resource)
		if owner := s.fleet.named(m.Instance); inside(&m) && owner != nil {
			return owner, nil
		}
		select {
		case <-more:
		case <-again:
		case <-ctx.Done():
			return nil, notPlayed(fmt.Sprintf("its middle was not seen in %s", resource))
		}
	}
}

// loads describes the loads that took more than one transaction. It returns "" if there are none.
func (t *tail) loads() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, resource := range storefake.Names() {
		if begun, broken := countLoads(t.marks[resource]); begun > 0 {
			fmt.Fprintf(&text, "%s: %d loads in the order of the blocks began, and %d times another instance took "+
				"one over in the middle\n", resource, begun, broken)
		}
	}
	return text.String()
}

// countLoads counts the loads that began, also those that began again because the table lies in another file,
// and how often the owner changed in the middle of one.
func countLoads(marks []mark) (begun, broken int) {
	before := mark{}
	for _, m := range marks {
		was, is := before.Load, m.Load
		if is != nil && (was == nil || is.File != was.File || is.Block < was.Block) {
			begun++
		}
		if was.inside() && m.Instance != before.Instance {
			broken++
		}
		before = m
	}
	return begun, broken
}
