package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// killedSweep asks for a sweep and kills the instance that begins it. The sweep may kill its successor too.
// So the successor polls first, and leaves the sweep for later unless it is asked for again.
type killedSweep struct {
	stage    *stage
	resource string

	dead    *instance
	name    string // of dead
	request int64
	from    int // the watermarks before this one are older than the kill
	at      time.Time
}

// strike kills. It tolerates a Kafka that is away: then there is no sweep.
func (k *killedSweep) strike(ctx context.Context) error {
	s := k.stage
	from := len(s.tail.marksFrom(k.resource, 0))
	s.fleet.command(ctx, "sweep", "--yes", k.resource)
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		more := s.tail.more()
		for n, m := range s.tail.marksFrom(k.resource, from) {
			if dead := s.fleet.named(m.Instance); m.Sweep != nil && !m.Sweep.Tried.IsZero() && dead != nil {
				k.dead, k.name, k.request, k.from = dead, m.Instance, m.Sweep.Request, from+n
				k.at = time.Now()
				return k.dead.kill()
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return notPlayed(fmt.Sprintf("no sweep of %s began", k.resource))
		}
	}
}

// after starts the instance again, and watches whether its successor leaves the sweep for later.
func (k *killedSweep) after(ctx context.Context) error {
	if err := k.dead.start(); err != nil {
		return err
	}
	unfinished := func(context.Context) bool {
		m, _ := k.stage.tail.lastMark(k.resource)
		return m.Swept == nil || m.Swept.Request < k.request
	}
	text, err := watch(ctx, k.backsOff, unfinished)
	if err == nil && text == "" {
		k.stage.journal.say("the sweep of %s was over before the kill", k.resource)
		return nil
	}
	if err != nil {
		k.stage.journal.fail(fmt.Errorf("sweep of %s: %w", k.resource, err))
		return nil
	}
	k.stage.journal.say("%s", text)
	// Other mishaps may put this one off as well. That it ends once all is quiet is looked at then.
	k.stage.fleet.command(ctx, "sweep", "--yes", k.resource)
	return nil
}

// backsOff says whether a successor has polled and leaves the sweep for later.
func (k *killedSweep) backsOff() (text string, all bool) {
	handedOver := false // for a replay or a pause, between the look and the kill
	for _, m := range k.stage.tail.marksFrom(k.resource, k.from) {
		if m.Instance == k.name || m.Sweep == nil {
			handedOver = m.Instance == k.name && m.Sweep != nil && m.Sweep.Tried.IsZero()
			continue
		}
		if handedOver {
			return k.name + " had handed the sweep of " + k.resource + " over before it died", true
		}
		if m.Sweep.Request > k.request {
			return "a later request asks for a sweep of " + k.resource, true
		}
		if !m.Sweep.Tried.IsZero() {
			k.stage.journal.fail(errors.New("a successor began the sweep of " + k.resource + " at once"))
			return "it was begun at once", true
		}
		if m.AsOf.After(k.at) && m.Sweep.Attempts > 0 && m.Sweep.NotBefore.After(k.at.Add(time.Minute)) {
			return fmt.Sprintf("%s has polled %s and leaves the sweep until %s", m.Instance, k.resource,
				m.Sweep.NotBefore.Format(time.RFC3339)), true
		}
	}
	return "no successor has polled and backed off", false
}
