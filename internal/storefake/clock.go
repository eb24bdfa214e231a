package storefake

import (
	"sync"
	"time"
)

// Clock is the service's clock: it stamps rows, says which day is today, and is what the Date header carries.
// It runs at Speed times the pace of the machine's clock from a chosen instant on, so that days end during a
// test. Pauses, rates and timeouts keep to the machine's clock.
//
// PostgreSQL has its own clock, now(): with a start or a speed of its own this clock leaves that one behind,
// which a reader that settles by the server's now() cannot bear. Use both only over REST.
type Clock struct {
	mu    sync.Mutex
	base  time.Time // of this clock, at real
	real  time.Time // carries the monotonic reading
	speed float64
	whole bool // to the second, else to the microsecond
}

// newClock starts a clock at start (zero: now) plus offset, speed times as fast as the machine's (0: as
// fast).
func newClock(start time.Time, offset time.Duration, speed float64, wholeSeconds bool) *Clock {
	now := time.Now()
	if start.IsZero() {
		start = now
	}
	if speed == 0 {
		speed = 1
	}
	return &Clock{base: start.UTC().Add(offset), real: now, speed: speed, whole: wholeSeconds}
}

// Now is the instant in UTC, floored to the microsecond, or to the second where the clock counts whole
// seconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.base.Add(time.Duration(float64(time.Since(c.real)) * c.speed)).Round(0)
	if c.whole {
		return t.Truncate(time.Second)
	}
	return t.Truncate(time.Microsecond)
}

// Advance moves the clock by d, backwards too.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = c.base.Add(d)
}
