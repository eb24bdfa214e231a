package storefake

import (
	"cmp"
	"sync"
	"time"
)

// Clock is the service's clock: it stamps rows, determines the current day, and fills the Date header.
// It runs at Speed times the pace of the machine's clock from a chosen instant on, so that days end during a
// test. Pauses, rates and timeouts keep to the machine's clock.
//
// PostgreSQL has its own clock, now(): with a start or a speed of its own this clock leaves that one behind,
// which a reader that settles by the server's now() cannot bear. Database.OwnClock makes them one.
type Clock struct {
	mu    sync.Mutex
	base  time.Time // of this clock, at real
	real  time.Time // carries the monotonic reading
	speed float64
	whole bool // to the second, else to the microsecond

	start time.Time     // its first time
	back  time.Duration // by how much it was moved back, in all
}

// newClock starts a clock at start plus offset, which runs speed times as fast as the machine's. A zero start
// is now, and speed 0 is 1.
func newClock(start time.Time, offset time.Duration, speed float64, wholeSeconds bool) *Clock {
	now := time.Now()
	if start.IsZero() {
		start = now
	}
	start = start.UTC().Add(offset)
	return &Clock{base: start, real: now, speed: cmp.Or(speed, 1), whole: wholeSeconds, start: start}
}

// Now returns the instant in UTC, floored to the microsecond, or to the second if the clock counts whole
// seconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.exact()
	if c.whole {
		return t.Truncate(time.Second)
	}
	return t.Truncate(time.Microsecond)
}

// exact is Now in full. The caller holds mu.
func (c *Clock) exact() time.Time {
	return c.base.Add(time.Duration(float64(time.Since(c.real)) * c.speed)).Round(0)
}

// reading is this clock's time at an instant of the machine's clock, and its speed.
func (c *Clock) reading() (base, machines time.Time, speed float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base, c.real.UTC(), c.speed
}

// Advance moves the clock by d, backwards too. It leaves PostgreSQL's now() alone: see Store.StepClock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = c.base.Add(d)
	c.back += max(0, -d)
}

// age is how long the clock has run since its start. Unlike Now it never goes back: a copy that lags behind
// does not stop for as long as the clock was moved back.
func (c *Clock) age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exact().Sub(c.start) + c.back
}
