package main

import (
	"fmt"
	"time"
)

const (
	// equalWithin bounds the time from one event to the next until the topics equal the service: the end of all
	// change, and each step of a sweep. sweptWithin bounds all of it. An instance sweeps one resource at a time,
	// so how long sweeps take depends on how many wait, and on the machine. Both only end a run that is stuck:
	// the result prints how long it took.
	equalWithin = 4 * time.Minute
	sweptWithin = 30 * time.Minute
)

// patience is how long to wait until the topics equal the service. Events give it more time, not the clock.
type patience struct {
	within time.Duration // from one event to the next
	began  time.Time
	last   time.Time // of an event
	stand  string    // of the sweeps then
}

func newPatience(within time.Duration, now time.Time) *patience {
	return &patience{within: within, began: now, last: now}
}

// over names the bound that is reached, or returns "". stand describes the sweeps that run or wait for their
// turn, and is "" without any.
func (p *patience) over(now time.Time, stand string) string {
	if stand != p.stand {
		p.stand, p.last = stand, now
	}
	switch {
	case now.Sub(p.began) >= sweptWithin:
		return fmt.Sprintf("within %s, the most that is waited for sweeps that come on", sweptWithin)
	case now.Sub(p.last) < p.within:
		return ""
	case stand == "":
		return fmt.Sprintf("within %s, and no sweep was in hand or waited for its turn", p.within)
	default:
		return fmt.Sprintf("and no sweep came on for %s", p.within)
	}
}
