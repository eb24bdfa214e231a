package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lags computes storestream_freshness_lag_seconds when it is scraped. A gauge that the loop sets would stand still exactly when the loop
// does: a source that hangs for an hour would show the lag of an hour ago.
type lags struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu     sync.Mutex
	byName map[string]*Lag
}

func newLags() *lags {
	return &lags{now: time.Now, byName: map[string]*Lag{}, desc: prometheus.NewDesc("storestream_freshness_lag_seconds",
		"Now minus the start of the last pass that met every change before it; grows while failing, small while idle.", []string{"resource"}, nil)}
}

func (l *lags) of(name string) *Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	lag := l.byName[name]
	if lag == nil {
		lag = &Lag{}
		l.byName[name] = lag
	}
	return lag
}

// Describe is prometheus.Collector's.
func (l *lags) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc }

// Collect is prometheus.Collector's. A resource without a known pass has no sample: zero would say that it is fresh.
func (l *lags) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for name, lag := range l.byName {
		if since := lag.Start(); !since.IsZero() {
			ch <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, max(0, now.Sub(since).Seconds()), name)
		}
	}
}

// Lag is how far one resource is behind, safe for concurrent use.
type Lag struct {
	mu    sync.Mutex
	start time.Time
}

// Since notes that a pass which began at start met every change made before it: from now on the lag is counted from there. A new
// owner calls it with the watermark's as_of, so that the lag goes on through a handover.
func (l *Lag) Since(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = start
}

// Begin counts from start where no pass is known: a resource is as far behind as somebody has been trying.
func (l *Lag) Begin(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.IsZero() {
		l.start = start
	}
}

// Forget ends the samples: the resource is another instance's now, which tells its lag. Not to be called before that is known: with nobody
// polling, somebody must go on telling how long.
func (l *Lag) Forget() { l.Since(time.Time{}) }

// Start is when the last such pass began; the zero time if none is known.
func (l *Lag) Start() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}
