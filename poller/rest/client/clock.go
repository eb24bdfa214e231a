package client

import (
	"net/http"
	"sync"
	"time"

	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// Clock compares the service's clock, which stamps the rows, with ours. The service's is the Date header of
// its answers: whole seconds, rounded down, so it is never ahead of the truth.
//
// A day may be closed only by requests sent after its end plus overlap. The Date of a request's own answer
// cannot show that: the service may have read its tables at 23:59:59 and written the header after midnight,
// and no answer would hold a row of the last second. So only the Date of an answer that came before the
// request was sent counts: a source plans with Over, then sends. Both clocks must agree: ours may be fast,
// and so may a Date from a cache or from one of several servers.
type Clock struct {
	now func() time.Time
	log *zap.Logger

	mu    sync.Mutex
	heard bool // any answer came
	dated bool // an answer carried a Date
	date  time.Time
	skew  time.Duration
}

func newClock(now func() time.Time, log *zap.Logger) *Clock { return &Clock{now: now, log: log} }

// observe notes the answer to a request that was sent at sent and has just come.
func (c *Clock) observe(h http.Header, sent time.Time) {
	received := c.now()
	date, err := http.ParseTime(h.Get("Date"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if !c.heard {
			c.log.Warn("the service sends no Date header: days are closed by the local clock alone, so keep it right")
		}
		c.heard = true
		return
	}
	c.heard, c.dated, c.date = true, true, date
	// The header was written between sent and received, and rounded down: half a second is the mean of what that
	// takes.
	middle := sent.Add(received.Sub(sent) / 2)
	c.skew = date.Add(500 * time.Millisecond).Sub(middle)
}

// Now is our clock.
func (c *Clock) Now() time.Time { return c.now() }

// Heard tells whether any answer has come. Before that nothing can be said of the service's clock.
func (c *Clock) Heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Over is the earlier of the two clocks: an instant that has passed by both.
func (c *Clock) Over() schemas.Instant {
	return min(schemas.InstantOf(c.now()), c.Service())
}

// Service is the time by the clock that stamps the rows, not later than the truth; our clock where the
// service sends no Date.
func (c *Clock) Service() schemas.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dated {
		return schemas.InstantOf(c.date)
	}
	return schemas.InstantOf(c.now())
}

// gap is the service's clock minus ours; false where the service sends no Date.
func (c *Clock) gap() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew, c.dated
}
