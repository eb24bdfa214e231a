package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// states are the gauges that render what package health knows and decides of each resource. They are computed
// when Prometheus scrapes. A gauge that the loop sets would stand still exactly when the loop does: a source
// that hangs for an hour would show the lag of an hour ago.
type states struct{ judged func() []health.Resource }

// Render makes the gauges show what judged returns whenever they are scraped. Call it once.
func (s *Set) Render(judged func() []health.Resource) { s.reg.MustRegister(states{judged}) }

// Describe implements prometheus.Collector.
func (s states) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s states) Collect(ch chan<- prometheus.Metric) {
	for _, r := range s.judged() {
		s.collect(ch, &r)
	}
}

func (s states) collect(ch chan<- prometheus.Metric, r *health.Resource) {
	labels := prometheus.Labels{"resource": r.Name}
	gauge := func(name string, value float64, help string, kind ...string) {
		desc := prometheus.NewDesc("storestream_"+name, help, []string{"kind"}[:len(kind)], labels)
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, kind...)
	}
	if r.LagSince != nil { // zero would say that the resource is fresh
		lag := schemas.InstantOf(time.Now()).Sub(*r.LagSince)
		gauge("freshness_lag_seconds", max(0, lag.Seconds()), "Age of the last pass that met every change.")
	}
	gauge("poll_interval_seconds", r.IntervalSeconds, "The setting resources.*.interval.")
	gauge("settled_timestamp_seconds", seconds(r.Settled),
		"The watermark's settled time, as Unix time. 0: unknown.")
	gauge("swept_timestamp_seconds", seconds(health.Known(r.Mark.SweptSince())),
		"When the last sweep ended, or the first one became due. 0: unknown.")
	gauge("first_load", is(r.AsOf == nil && (r.Polling || r.Written != nil)),
		"1 until the first complete pass has ended.")
	gauge("owned", is(r.Polling), "1 while this instance polls the resource.")
	gauge("dedup_bytes", float64(r.DedupBytes), "Memory of deduplication.")
	gauge("dead_letters_in_topic", float64(r.Letters()), "Rows in the dead-letter topic now.")
	gauge("settling_delayed", is(r.State == health.SettlingDelayed),
		"1 in the state settling_delayed.")
	gauge("blocked", is(r.State == health.Blocked), "1 in the state blocked.")
	gauge("incomplete", is(r.State == health.Incomplete), "1 in the state incomplete.")
	gauge("paused", is(r.State == health.Paused), "1 in the state paused.")
	gauge("stalled", is(r.State == health.Stalled), "1 in the state stalled.")

	swept := cmp.Or(r.Swept, &watermark.Swept{})
	gauge("sweep_left", is(swept.Left != ""),
		"1 if the last sweep left differences.")
	found := map[string]int{"missing": swept.Missing, "stale": swept.Stale, "extra": swept.Extra}
	for kind, rows := range found {
		gauge("sweep_found", float64(rows), "Rows that differed in the last sweep: missing, stale, extra.",
			kind)
	}
}

// seconds returns at as Unix time, 0 if it is not known.
func seconds(at *schemas.Instant) float64 {
	if at == nil {
		return 0
	}
	return float64(*at) / 1e6
}

// is returns the value of a gauge that says whether something is so.
func is(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
