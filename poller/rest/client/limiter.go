package client

import (
	"context"
	"math"
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
	// maxUnclear is how often a request may be refused with a status that does not name the rate, before the
	// status is believed. The pauses between come to a minute, which is longer than most services count.
	maxUnclear = 9
	// fewUnclear is the same if its path was not answered lately: the key may well have no right.
	fewUnclear = 4
	// lately is longer than such a request is repeated.
	lately = 2 * time.Minute
)

// limiter holds back all requests that use one key. The service counts by key, so to refuse one resource's
// request is to refuse them all. If each resource waited out its own refusals, the others would use up the
// rate that it leaves, and the service would refuse all of them again.
type limiter struct {
	ceiling float64

	mu       sync.Mutex
	pace     *rate.Limiter
	cut      time.Time // when the rate was last halved
	changed  time.Time // when the rate was last changed
	resume   time.Time // no request is sent before
	since    time.Time // waiting since; zero while the service accepts
	why      string    // the reason for resume, for people
	logged   time.Time // the end of the pause that the log has named. Zero if it has named none
	refusals int       // in a row
	// answered is when each path was answered last. meant are the paths that stayed refused (see patience).
	answered map[string]time.Time
	meant    map[string]bool
}

func newLimiter(ceiling float64) *limiter {
	return &limiter{ceiling: ceiling, pace: rate.NewLimiter(rate.Limit(ceiling), 1),
		answered: map[string]time.Time{}, meant: map[string]bool{}}
}

// wait returns when the next request may be sent. refusedFor gets the seconds waited because the service had
// refused, each second as it passes. Seconds that only keep the rate below the ceiling do not count.
func (l *limiter) wait(ctx context.Context, refusedFor func(seconds float64)) error {
	for {
		if err := l.pause(ctx, refusedFor); err != nil {
			return err
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

func (l *limiter) pause(ctx context.Context, refusedFor func(seconds float64)) error {
	for d := l.remaining(); d > 0; d = l.remaining() {
		began := time.Now()
		err := wait.For(ctx, min(d, time.Second))
		refusedFor(time.Since(began).Seconds())
		if err != nil {
			return err
		}
	}
	return nil
}

// refused records that the service refused a request sent at sent, and asked for a pause of after. Zero
// means that it named no pause. why is the reason for people. news is set if the log does not know yet that
// the pause lasts until then.
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
	if sent.After(l.cut) {
		l.cut, l.changed = now, now
		l.refusals++
		l.pace.SetLimit(max(l.pace.Limit()/2, rate.Limit(l.ceiling*lowest)))
	}
	if after <= 0 {
		after = min(firstPause<<min(l.refusals-1, 16), lastPause)
		after += rand.N(after/4 + 1)
	}
	if resume := now.Add(min(after, maxRetryAfter)); resume.After(l.resume) {
		l.resume, l.why = resume, why
	}
	// A refusal that another worker hears a moment later moves the end by that moment, which is no news.
	if news = l.resume.Sub(now) >= longPause && l.resume.Sub(l.logged) >= longPause; news {
		l.logged = l.resume
	}
	return l.resume, news
}

// accepted records that the service did not refuse a request sent at sent. If a logged pause is over now, it
// returns how long the service had refused. Otherwise it returns 0.
func (l *limiter) accepted(sent time.Time) (refusedFor time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sent.After(l.cut) {
		return 0
	}
	now := time.Now()
	if !l.logged.IsZero() {
		refusedFor = now.Sub(l.since)
	}
	l.refusals, l.since, l.logged = 0, time.Time{}, time.Time{}
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

// unclear reports whether a refusal with status may be one for the rate. 400, 401 and 404 have another
// meaning, which the caller acts on.
func unclear(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound:
		return false
	}
	return status >= 400 && status < 500
}

// patience returns how often a request to path may be refused with a status that does not say why, before
// the refusal is not taken for one for the rate.
//
// The document leaves open with which status the service refuses for the rate: it may be 403 or 420 as
// well. A path that was answered a moment ago, or is answered when the same request is sent again after a
// pause, was refused for the rate. If the key has no right, it stays refused. That is tried once, because
// the pauses hold back all resources. Until the path is answered again its refusals are taken at their
// word.
func (l *limiter) patience(path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.meant[path]:
		return 1
	case time.Since(l.answered[path]) < lately:
		return maxUnclear
	}
	return fewUnclear
}

// judge records that path was answered, or that it stayed refused.
func (l *limiter) judge(path string, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meant[path] = refused
	if !refused {
		l.answered[path] = time.Now()
	}
}

// retryAfter is askedFor, bounded by maxRetryAfter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	return min(askedFor(h, now), maxRetryAfter)
}

// askedFor reads Retry-After in both its forms, seconds and date. It returns 0 if the header is absent, 0,
// past or unreadable: the limiter then chooses. A date is compared with the Date of the same answer, if it
// has one, because the service's clock need not be ours.
func askedFor(h http.Header, now time.Time) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if seconds >= longest.Seconds() {
			return longest
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
	return max(0, at.Sub(now))
}
