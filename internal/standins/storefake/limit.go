package storefake

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter counts requests against the Limit in force.
type limiter struct {
	mu    sync.Mutex
	rules Limit
	rate  *rate.Limiter
}

// burst is how many requests may come at once.
func (l *Limit) burst() int { return cmp.Or(l.Burst, max(1, int(l.PerSecond))) }

// wait returns how long the client should wait, or 0 if the request may pass.
func (l *limiter) wait(rules Limit) time.Duration {
	if rules.PerSecond == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == nil || l.rules != rules {
		l.rules, l.rate = rules, rate.NewLimiter(rate.Limit(rules.PerSecond), rules.burst())
	}
	r := l.rate.Reserve()
	d := r.Delay()
	if d > 0 {
		r.Cancel() // a refused request uses nothing up
	}
	return d
}

// left is how many requests may pass at once now.
func (l *limiter) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == nil {
		return 0
	}
	return max(0, int(l.rate.Tokens()))
}

// tellRate tells the limit as frameworks do, also in answers that are not refused.
func (x *exchange) tellRate() {
	rules := x.read.Limit
	if !x.read.Habits.RateHeaders || rules.PerSecond == 0 {
		return
	}
	head := x.w.Header()
	head.Set("X-RateLimit-Limit", strconv.Itoa(rules.burst()))
	head.Set("X-RateLimit-Remaining", strconv.Itoa(x.server.limit.left()))
}

// refuse answers a request that must wait, in the form that the readings say.
func (x *exchange) refuse(wait time.Duration) {
	w, rules, now := x.w, x.read.Limit, x.server.clock.Now()
	f := &failure{429, "rate_limited", "too many requests", ""}
	switch rules.Status {
	case 0:
	case 503:
		f = &failure{503, "unavailable", "the service is busy", ""}
	default:
		f.status = rules.Status
	}
	seconds := math.Ceil(wait.Seconds())
	if x.read.Habits.RateHeaders {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(now.Unix()+int64(seconds), 10))
	}
	switch rules.RetryAfter {
	case RetryAfterSeconds:
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	case RetryAfterDate:
		w.Header().Set("Retry-After", now.Add(time.Duration(seconds)*time.Second).Format(http.TimeFormat))
	case RetryAfterZero:
		w.Header().Set("Retry-After", "0")
	}
	if rules.HTML {
		f.writeHTML(w)
		return
	}
	x.fail(f)
}
