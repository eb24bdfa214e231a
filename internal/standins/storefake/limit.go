package storefake

import (
	"cmp"
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
