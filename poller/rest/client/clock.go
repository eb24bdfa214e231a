package client

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
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
//
// # Answers out of a cache
//
// storestream asks for fresh answers, and a cache may give an old one all the same. It shows by Age, which
// every cache of HTTP/1.1 has to send. A cache that does not send it still hands on the Date that the
// service wrote, which then lies before the request. Earlier answers have shown the service's clock, and
// ours has run on since (believed). So we know the service's time when we sent a request. If the Date of
// the answer is more than oddBehind before that time, the answer was not made for the request, or the
// service's clock has been set back. The next answers show which: a clock goes on, and the answers in a
// cache do not change. A contradicting clock is believed once it has gone on with ours for oddFor.
//
// Three caches stay unseen: one without Age whose answers are no older than oddBehind, one that writes a
// Date of its own, and one that hides Date as well.
type Clock struct {
	now func() time.Time
	log *zap.Logger

	mu    sync.Mutex
	heard bool      // any answer came
	date  time.Time // of the newest answer that carried one
	skew  time.Duration
	// believed is the service's clock, not later than the truth. odd is one that contradicts it.
	believed, odd dial
}

// dial is a clock that showed date when ours showed at. That many answers had it, the first of them at
// since.
type dial struct {
	date, at, since time.Time
	answers         int
}

// then returns the time that the clock shows when ours shows at.
func (r *dial) then(at time.Time) time.Time { return r.date.Add(at.Sub(r.at)) }

// proved reports whether the clock has gone on long enough to be one.
func (r *dial) proved(at time.Time) bool {
	return r.answers >= oddAnswers && at.Sub(r.since) >= oddFor
}

const (
	// oddBehind is how far apart the clocks of several servers may be. An answer that is further behind is from
	// a cache.
	oddBehind = 30 * time.Second
	// oddAnswers that agree within oddTick, and go on with our clock for oddFor, are a clock and no cache.
	oddAnswers = 3
	oddFor     = 10 * time.Second
	oddTick    = 2 * time.Second
	// maxAge is the oldest that Age can say that an answer is.
	maxAge = 365 * 24 * time.Hour
)

func newClock(now func() time.Time, log *zap.Logger) *Clock { return &Clock{now: now, log: log} }

// observe takes the headers of an answer that has just come, to a request that was sent at sent. It returns
// Date and Age of its Page.
func (c *Clock) observe(h http.Header, sent time.Time) (made schemas.Instant, age time.Duration) {
	received := c.now()
	date, err := http.ParseTime(h.Get("Date"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if age = statedAge(h); age <= received.Sub(sent)+time.Second { // made while we waited, both being rounded
		age = 0
	}
	if err != nil {
		if !c.heard {
			c.log.Warn("the service sends no Date header: days are closed by the local clock alone, so keep it right")
		}
		c.heard = true
		return schemas.MinInstant, age
	}
	made = schemas.InstantOf(date)
	c.heard, c.date = true, date
	date = date.Add(age)
	// The header was written between sent and received, and rounded down: by half a second on average.
	middle := sent.Add(received.Sub(sent) / 2)
	c.skew = date.Add(500 * time.Millisecond).Sub(middle)
	if behind := c.compare(date, sent, received); behind > oddBehind {
		age = max(age, behind)
	}
	return made, age
}

// compare returns how far date is behind the clock that we believe in, and decides which clock that is.
func (c *Clock) compare(date, sent, received time.Time) (behind time.Duration) {
	b, o := &c.believed, &c.odd
	if b.answers == 0 {
		*b = dial{date: date, at: received, since: received, answers: 1}
		return 0
	}
	behind = b.then(sent).Sub(date) - time.Second // which it was rounded by
	ahead := date.Sub(b.then(received))
	if behind <= oddTick && ahead <= oddBehind {
		b.answers++
		if ahead > 0 { // both are no later than the truth
			b.date, b.at = date, received
		}
		if o.date.After(b.then(o.at)) {
			*o = dial{} // a clock that is ahead, and not all answers have it
		}
		return behind
	}
	if o.answers == 0 || date.Sub(o.then(received)).Abs() > oddTick+received.Sub(sent) {
		*o = dial{date: date, at: received, since: received}
	}
	if o.answers++; !o.proved(received) {
		return behind
	}
	if step := date.Sub(b.then(received)); step.Abs() > oddBehind {
		c.log.Warn("the service's clock was set, or ours was; days are closed by it from now on",
			zap.Duration("by", step.Round(time.Second)))
	}
	*b, *o = dial{date: date, at: received, since: o.since, answers: o.answers}, dial{}
	return 0
}

// statedAge reads the header Age. It returns 0 if it is absent or unreadable.
func statedAge(h http.Header) time.Duration {
	text, _, _ := strings.Cut(h.Get("Age"), ",")
	seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
	if errors.Is(err, strconv.ErrRange) {
		return maxAge
	}
	return min(time.Duration(seconds)*time.Second, maxAge)
}

// Now is our clock.
func (c *Clock) Now() time.Time { return c.now() }

// Heard reports whether any answer has come. Before that the service's clock is unknown.
func (c *Clock) Heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Over is the earlier of the two clocks: an instant that has passed by both.
func (c *Clock) Over() schemas.Instant {
	return min(schemas.InstantOf(c.now()), c.Service())
}

// Service is the time by the clock that stamps the rows, not later than the truth. It is our clock if the
// service sends no Date.
func (c *Clock) Service() schemas.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.date.IsZero() {
		return schemas.InstantOf(c.date)
	}
	return schemas.InstantOf(c.now())
}

// Before reports whether the service's clock was set back before i: it shows a time before i, and has gone
// on there long enough to be believed. now is the time that it shows.
func (c *Clock) Before(i schemas.Instant) (now schemas.Instant, before bool) {
	at := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.believed
	now = schemas.InstantOf(b.then(at))
	return now, b.proved(at) && now < i
}

// gap is the service's clock minus ours. It returns false if the service sends no Date.
func (c *Clock) gap() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew, !c.date.IsZero()
}
