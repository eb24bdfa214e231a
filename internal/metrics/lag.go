package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Lag is how far one resource is behind: storestream_freshness_lag_seconds. Prometheus computes it when it
// scrapes. A gauge that the loop sets would stand still exactly when the loop does: a source that hangs for
// an hour would show the lag of an hour ago. It is safe for concurrent use.
type Lag struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu    sync.Mutex
	start time.Time
}

func newLag(labels prometheus.Labels) *Lag {
	const help = "Now minus the start of the last pass that met every change before it; " +
		"grows while failing, small while idle."
	return &Lag{now: time.Now,
		desc: prometheus.NewDesc("storestream_freshness_lag_seconds", help, nil, labels)}
}

// Since notes that a pass which began at start met every change made before it. The lag counts from there on.
// A new owner calls it with the watermark's as_of, so the lag goes on through a handover.
func (l *Lag) Since(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = start
}

// Begin counts from start if no pass is known: a resource is as far behind as an instance has been trying.
func (l *Lag) Begin(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.IsZero() {
		l.start = start
	}
}

// Forget ends the samples: another instance has the resource, and reports its lag. Call it only when that is
// known. While no instance polls, one must go on reporting for how long.
func (l *Lag) Forget() { l.Since(time.Time{}) }

// Start returns when the last such pass began, or the zero time if unknown.
func (l *Lag) Start() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}

// Describe implements prometheus.Collector.
func (l *Lag) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc }

// Collect implements prometheus.Collector. Without a known pass there is no sample: zero would say that the
// resource is fresh.
func (l *Lag) Collect(ch chan<- prometheus.Metric) {
	if since := l.Start(); !since.IsZero() {
		seconds := max(0, l.now().Sub(since).Seconds())
		ch <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, seconds)
	}
}
