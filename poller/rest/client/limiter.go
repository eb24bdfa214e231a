package client

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
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

// limiter holds back the requests that use one key. All share one pace, because the service counts by key.
//
// A pause belongs to the path that was refused, until a second path is refused as well. A service may refuse
// one path for reasons of its own, and the other resources need not wait for that. If two paths are refused,
// it refuses the key: then everybody waits for as long as both were told to. If each path waited out its own
// refusals only, the others would use up the rate that it leaves, and the service would refuse all again.
type limiter struct {
	ceiling float64

	mu      sync.Mutex
	pace    *rate.Limiter
	changed time.Time         // when the rate was last halved or raised
	paths   map[string]*pause // of the paths that were refused for the rate and not accepted since
}

// pause is what refusals for the rate, one after the other, ask of one path.
type pause struct {
	resume      time.Time // the service wants no request before
	since, last time.Time // the first and the newest refusal
	why         string    // for people
	refusals    int       // in a row
}

func newLimiter(ceiling float64) *limiter {
	return &limiter{ceiling: ceiling, pace: rate.NewLimiter(rate.Limit(ceiling), 1), paths: map[string]*pause{}}
}

// wait returns when the next request to path may be sent. refusedFor gets the seconds waited because the
// service had refused, each second as it passes. Seconds that only keep the rate below the ceiling do not
// count.
func (l *limiter) wait(ctx context.Context, path string, refusedFor func(seconds float64)) error {
	for {
		for d := l.remaining(path); d > 0; d = l.remaining(path) {
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
		if l.remaining(path) <= 0 { // else the service refused another request while this one waited for its turn
			return nil
		}
	}
}

func (l *limiter) remaining(path string) time.Duration {
	return time.Until(l.holds(path).resume)
}

// holds returns the pause that path has to keep: its own, until the service accepts a request to path, or the
// longest that two paths were told to keep, while it lasts.
func (l *limiter) holds(path string) pause {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.live()[path]
	later := func(a, b *pause) int { return b.resume.Compare(a.resume) }
	longest := slices.SortedFunc(maps.Values(l.paths), later)
	switch {
	case len(longest) > 1 && own != longest[0] && time.Until(longest[1].resume) > 0:
		return *longest[1]
	case own != nil:
		return *own
	}
	return pause{}
}

// live returns the pauses. It drops those that ended more than lastPause ago.
func (l *limiter) live() map[string]*pause {
	for path, p := range l.paths {
		if time.Since(p.resume) > lastPause {
			delete(l.paths, path)
		}
	}
	return l.paths
}

// refused records that the service refused a request to path that was sent at sent, and asked for a pause of
// after. Zero means that it named no pause. why is the reason for people. news is set if the pause is long,
// and a refusal before has not named it already: one that another worker hears a moment later moves its end
// by that moment.
//
// The rate is halved once an episode. Of five requests refused at once, four were sent before the first
// answer was known. To halve the rate for each would stop the stream. A path that is refused again and again
// while the others are not halves it once: that is not the rate of all.
func (l *limiter) refused(
	path string, sent time.Time, after time.Duration, why string,
) (until time.Time, news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, p := time.Now(), l.live()[path]
	if p == nil {
		p = &pause{since: now}
		l.paths[path] = p
	}
	if sent.After(l.changed) && (p.refusals == 0 || len(l.paths) > 1) {
		l.changed = now
		l.pace.SetLimit(max(l.pace.Limit()/2, rate.Limit(l.ceiling*lowest)))
	}
	if sent.After(p.last) {
		p.refusals++
	}
	if p.last = now; after <= 0 {
		after = min(firstPause<<min(p.refusals-1, 16), lastPause)
		after += rand.N(after/4 + 1)
	}
	before := p.resume
	if resume := now.Add(after); resume.After(before) {
		p.resume, p.why = resume, why
	}
	news = p.resume.Sub(now) >= longPause && p.resume.Sub(before) >= longPause
	return p.resume, news
}

// accepted records that the service did not refuse a request to path that was sent at sent. It returns how
// long the service had refused the path, if that is over now.
func (l *limiter) accepted(path string, sent time.Time) (refusedFor time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if p := l.paths[path]; p != nil && sent.After(p.last) {
		refusedFor = now.Sub(p.since)
		delete(l.paths, path)
	}
	full := rate.Limit(l.ceiling)
	if sent.After(l.changed) && l.pace.Limit() < full && now.Sub(l.changed) >= raiseEvery {
		l.pace.SetLimit(min(full, l.pace.Limit()+full*raiseBy))
		l.changed = now
	}
	return refusedFor
}

// state returns the rate allowed now, and the longest of the pauses that last, if any.
func (l *limiter) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{RequestsPerSecond: float64(l.pace.Limit())}
	for _, p := range l.live() {
		if s.RefusedSince.IsZero() || p.since.Before(s.RefusedSince) {
			s.RefusedSince = p.since
		}
		if p.resume.After(s.RefusedUntil) {
			s.RefusedUntil, s.Refusal = p.resume, p.why
		}
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
