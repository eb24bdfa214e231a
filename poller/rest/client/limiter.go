package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/wait"
	"golang.org/x/time/rate"
)

const (
	// maxRetryAfter bounds the pause of a Retry-After: a date in another year must not stop the stream until
	// then.
	maxRetryAfter = 5 * time.Minute
	// Without a usable Retry-After the first pause is firstPause; it doubles with each refusal in a row up to
	// lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = time.Minute
	// longPause is the shortest pause that is logged: shorter ones come and go with every burst of requests.
	longPause = 5 * time.Second
	// After raiseEvery without a refusal the rate goes up by raiseBy of the ceiling: from half to full in 50 s.
	raiseEvery = 5 * time.Second
	raiseBy    = 0.05
	// lowest is the smallest part of the ceiling that the rate falls to.
	lowest = 1.0 / 64
)

// limiter holds back all requests that use one key. The service counts by key, so to refuse one resource's
// request is to refuse them all. If each resource waited out its own refusals, the others would use up the
// rate that it leaves, and the service would refuse all of them again.
type limiter struct {
	ceiling float64

	mu       sync.Mutex
	pace     *rate.Limiter
	changed  time.Time // when the rate was last halved or raised
	resume   time.Time // no request is sent before
	since    time.Time // waiting since; zero while the service accepts
	why      string    // the reason for resume, for people
	refusals int       // in a row
}

func newLimiter(ceiling float64) *limiter {
	return &limiter{ceiling: ceiling, pace: rate.NewLimiter(rate.Limit(ceiling), 1)}
}

// wait returns when the next request may be sent. refusedFor gets the seconds waited because the service had
// refused, each second as it passes. Seconds that only keep the rate below the ceiling do not count.
func (l *limiter) wait(ctx context.Context, refusedFor func(seconds float64)) error {
	for {
		for d := l.remaining(); d > 0; d = l.remaining() {
			began := time.Now()
			err := wait.For(ctx, min(d, time.Second))
			refusedFor(time.Since(began).Seconds())
			if err != nil {
				return err
			}
		}
		turn := l.pace.Reserve() // not Wait: that refuses a turn past ctx's deadline, before ctx has ended
		if err := wait.For(ctx, turn.Delay()); err != nil {
			turn.Cancel()
			return err
		}
		if l.remaining() <= 0 { // else the service refused another request while this one waited for its turn
			return nil
		}
	}
}

func (l *limiter) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.resume)
}

// refused records that the service refused a request sent at sent, and asked for a pause of after. Zero
// means that it named no pause. why is the reason for people. news is set if the pause is long, and a refusal
// before has not named it already: one that another worker hears a moment later moves its end by that moment.
//
// The rate is halved once an episode. Of five requests refused at once, four were sent before the first
// answer was known. To halve the rate for each would stop the stream.
func (l *limiter) refused(sent time.Time, after time.Duration, why string) (until time.Time, news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.since.IsZero() {
		l.since = now
	}
	if sent.After(l.changed) {
		l.changed = now
		l.refusals++
		l.pace.SetLimit(max(l.pace.Limit()/2, rate.Limit(l.ceiling*lowest)))
	}
	if after <= 0 {
		after = min(firstPause<<min(max(l.refusals, 1)-1, 16), lastPause)
		after += rand.N(after/4 + 1)
	}
	before := l.resume
	if resume := now.Add(after); resume.After(before) {
		l.resume, l.why = resume, why
	}
	news = l.resume.Sub(now) >= longPause && l.resume.Sub(before) >= longPause
	return l.resume, news
}

// accepted records that the service did not refuse a request sent at sent. It returns how long the service
// had refused, if that is over now.
func (l *limiter) accepted(sent time.Time) (refusedFor time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sent.After(l.changed) {
		return 0
	}
	now := time.Now()
	if !l.since.IsZero() {
		refusedFor = now.Sub(l.since)
	}
	l.refusals, l.since = 0, time.Time{}
	if full := rate.Limit(l.ceiling); l.pace.Limit() < full && now.Sub(l.changed) >= raiseEvery {
		l.pace.SetLimit(min(full, l.pace.Limit()+full*raiseBy))
		l.changed = now
	}
	return refusedFor
}

// state returns the rate allowed now, and the refusals that last, if any.
func (l *limiter) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{RequestsPerSecond: float64(l.pace.Limit())}
	if !l.since.IsZero() {
		s.RefusedSince, s.RefusedUntil, s.Refusal = l.since, l.resume, l.why
	}
	return s
}

// retryAfter reads Retry-After in both its forms, seconds and date, up to maxRetryAfter. It returns 0 if the
// header is absent, 0, past or unreadable: the limiter then chooses. A date is compared with the Date of the
// same answer, if it has one, because the service's clock need not be ours.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if seconds > maxRetryAfter.Seconds() {
			return maxRetryAfter
		}
		return max(0, time.Duration(seconds*float64(time.Second)))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}
