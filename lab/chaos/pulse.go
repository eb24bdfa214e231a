package main

import (
	"context"
	"time"
)

// pulse measures how long this process got no turn at a processor. On a shared machine a stall of everything
// looks like a mishap's. If it is longer than the overlap, it makes the service's writers break their
// promise. So read the figures beside it.
type pulse struct {
	longest time.Duration // to be read when done is closed
	cancel  context.CancelFunc
	done    chan struct{}
}

const beat = 50 * time.Millisecond

func startPulse() *pulse {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pulse{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			p.longest = max(p.longest, time.Since(last)-beat)
			last = time.Now()
		}
	}()
	return p
}

// stop ends the measuring and returns the longest stall.
func (p *pulse) stop() time.Duration {
	p.cancel()
	<-p.done
	return p.longest
}
