package rest

import (
	"net/http"
	"sync"
	"time"

	"github.com/storestream/storestream/schemas"
)

// clock compares the service's clock, which stamps the rows, with ours. The service's is the Date header of its answers (to the second,
// floored, so what it says is never ahead of the truth).
//
// A day may be closed only by requests sent after its end plus overlap. The Date of a request's own answer cannot show that: the service
// may have read its tables at 23:59:59 and written the header after midnight, and a row of the last second would be in no answer. So
// only the Date of an answer that had come before the request was sent counts: the source plans with what over says, then sends.
// Both clocks must agree: ours may be fast, and a Date from a cache or from one of several servers may be, too.
type clock struct {
	now func() time.Time

	mu    sync.Mutex
	heard bool // any answer came
	dated bool // an answer carried a Date
	date  time.Time
	skew  time.Duration
	warn  func() // called once, when an answer has no Date
}

// observe notes the answer to a request that was sent at sent and has just come.
func (c *clock) observe(h http.Header, sent time.Time) {
	received := c.now()
	date, err := http.ParseTime(h.Get("Date"))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = true
	if err != nil {
		if !c.dated && c.warn != nil {
			c.warn()
			c.warn = nil
		}
		return
	}
	c.dated, c.date = true, date
	// The header was written between sent and received, and floored: half a second is the mean of what flooring takes.
	middle := sent.Add(received.Sub(sent) / 2)
	c.skew = date.Add(500 * time.Millisecond).Sub(middle)
}

// known tells whether any answer came yet: before that nothing can be said of the service's clock.
func (c *clock) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// over is the earlier of the two clocks: an instant that has passed by both.
func (c *clock) over() schemas.Instant {
	now := schemas.InstantOf(c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dated {
		return min(now, schemas.InstantOf(c.date))
	}
	return now
}

// service is the time by the clock that stamps the rows, not later than the truth.
func (c *clock) service() schemas.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dated {
		return schemas.InstantOf(c.date)
	}
	return schemas.InstantOf(c.now())
}

// gap is the service's clock minus ours; false where the service sends no Date.
func (c *clock) gap() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew, c.dated
}
