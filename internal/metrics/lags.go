package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lags computes storestream_freshness_lag_seconds when Prometheus scrapes it. A gauge that the loop sets
// would stand still exactly when the loop does: a source that hangs for an hour would show the lag of an hour
// ago.
type lags struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu     sync.Mutex
	byName map[string]*Lag
}

func newLags() *lags {
	const help = "Now minus the start of the last pass that met every change before it; " +
		"grows while failing, small while idle."
	desc := prometheus.NewDesc("storestream_freshness_lag_seconds", help, []string{"resource"}, nil)
	return &lags{desc: desc, now: time.Now, byName: map[string]*Lag{}}
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

// Describe implements prometheus.Collector.
func (l *lags) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc }

// Collect implements prometheus.Collector. A resource without a known pass has no sample: zero would say that
// it is fresh.
func (l *lags) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for name, lag := range l.byName {
		if since := lag.Start(); !since.IsZero() {
			seconds := max(0, now.Sub(since).Seconds())
			ch <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, seconds, name)
		}
	}
}
