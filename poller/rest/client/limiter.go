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
	// maxRetryAfter bounds what a Retry-After can ask for: a date in another year must not stop the stream until
	// then.
	maxRetryAfter = 5 * time.Minute
	// Without a usable Retry-After the first pause is firstPause; it doubles with each refusal in a row up to
	// lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = time.Minute
	// longPause is from when on a pause is told: shorter ones come and go with every burst of requests.
	longPause = 5 * time.Second
	// After raiseEvery without a refusal the rate goes up by raiseBy of the ceiling: from half to full in 50 s.
	raiseEvery = 5 * time.Second
	raiseBy    = 0.05
	// lowest is the smallest part of the ceiling that the rate falls to.
	lowest = 1.0 / 64
)

// limiter holds back all requests that use one key. The service counts by key, so to refuse one resource's
// request is to refuse them all: if each resource waited out its own refusals, the others would use up what
// it leaves, and the service would refuse all of them again.
type limiter struct {
	ceiling float64

	mu       sync.Mutex
	pace     *rate.Limiter
	cut      time.Time // when the rate was last halved
	changed  time.Time // when the rate was last changed
	resume   time.Time // nobody sends before
	since    time.Time // waiting since; zero while the service accepts
	why      string    // why resume is when it is, for people
	told     time.Time // until when the log says that nobody sends; zero: it says nothing of that
	refusals int       // in a row
}

func newLimiter(ceiling float64) *limiter {
	return &limiter{ceiling: ceiling, pace: rate.NewLimiter(rate.Limit(ceiling), 1)}
}

// wait returns when the next request may be sent. refusedFor gets the seconds waited because the service had
// refused, not those that merely keep below the ceiling, each second as it passes.
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

// refused notes that the service refused a request sent at sent, and asked to wait for after (0: it did not
// say, or said now). why says so to people. news: nobody was told yet that the pause lasts until then.
//
// The rate is halved once an episode: of five requests refused at once, four were sent before the first
// answer was known, and to halve the rate for each would stop the stream.
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
	if news = l.resume.Sub(now) >= longPause && l.resume.Sub(l.told) >= longPause; news {
		l.told = l.resume
	}
	return l.resume, news
}

// accepted notes that the service did not refuse a request sent at sent. It returns for how long it had
// refused, if that was told and is over now, else 0.
func (l *limiter) accepted(sent time.Time) (refusedFor time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sent.After(l.cut) {
		return 0
	}
	now := time.Now()
	if !l.told.IsZero() {
		refusedFor = now.Sub(l.since)
	}
	l.refusals, l.since, l.told = 0, time.Time{}, time.Time{}
	if full := rate.Limit(l.ceiling); l.pace.Limit() < full && now.Sub(l.changed) >= raiseEvery {
		l.pace.SetLimit(min(full, l.pace.Limit()+full*raiseBy))
		l.changed = now
	}
	return refusedFor
}

// refusal is since when the service has been refusing (zero: it accepts), until when nobody sends, and why.
func (l *limiter) refusal() (since, until time.Time, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return time.Time{}, time.Time{}, ""
	}
	return l.since, l.resume, l.why
}

// state is the rate allowed now, and since when the service has been refusing (zero: it accepts).
func (l *limiter) state() (perSecond float64, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.pace.Limit()), l.since
}

// retryAfter is what is believed of askedFor.
func retryAfter(h http.Header, now time.Time) time.Duration {
	return min(askedFor(h, now), maxRetryAfter)
}

// askedFor reads Retry-After in both its forms, seconds and date. 0 where it is absent, 0, past or
// unreadable: the limiter then chooses. A date is compared with the Date of the same answer where there is
// one, because the service's clock need not be ours.
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
