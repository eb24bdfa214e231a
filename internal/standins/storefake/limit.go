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

// wait is how long the client should wait. At 0 the request may pass.
func (l *limiter) wait(rules Limit) time.Duration {
	if rules.PerSecond == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == nil || l.rules != rules {
		burst := cmp.Or(rules.Burst, max(1, int(rules.PerSecond)))
		l.rules, l.rate = rules, rate.NewLimiter(rate.Limit(rules.PerSecond), burst)
	}
	r := l.rate.Reserve()
	d := r.Delay()
	if d > 0 {
		r.Cancel() // a refused request uses nothing up
	}
	return d
}

// refuse answers a request that must wait, in the form that rules say.
func refuse(w http.ResponseWriter, rules Limit, wait time.Duration, now time.Time) {
	f := &failure{429, "rate_limited", "too many requests"}
	switch rules.Status {
	case 0:
	case 503:
		f = &failure{503, "unavailable", "the service is busy"}
	default:
		f.status = rules.Status
	}
	seconds := math.Ceil(wait.Seconds())
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
	f.write(w)
}
