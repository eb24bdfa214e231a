package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Reasons for which a row that was read is not published.
const (
	Repeat      = "repeat"       // a repeat: published before, as it is
	BeforeStart = "before_start" // older than the start of the read
	Deferred    = "deferred"     // older than the published version: deferred until its second look
)

// Resource is the metrics of one resource. A function takes the value of the metric's other label.
type Resource struct {
	Lag                                          *Lag
	Settled, Owned                               prometheus.Gauge
	Swept, SweepInterval, SweepLeft              prometheus.Gauge
	FirstLoad, PollInterval                      prometheus.Gauge
	DedupBytes, LettersInTopic                   prometheus.Gauge
	SettlingDelayed, Blocked, Stalled            prometheus.Gauge
	RowsRead, RowsPublished, LateRows, DedupFull prometheus.Counter
	RateLimited, PagePasses, SQLTimeouts         prometheus.Counter
	PollDuration                                 prometheus.Histogram

	DeadLetters      func(...string) prometheus.Counter // by the field that broke the contract, or "row"
	Polls            func(...string) prometheus.Counter // by outcome: ok, failed, blocked
	HTTPRequests     func(...string) prometheus.Counter // by status code; "0": there was no answer
	SweepDifferences func(...string) prometheus.Counter // by kind: missing, stale, extra
	SweepFound       func(...string) prometheus.Gauge   // by the same kinds, in the last one
	UnknownFields    func(...string) prometheus.Counter // by name: fields that the schema does not know
	Suppressed       func(...string) prometheus.Counter // by reason: rows that were read and not published

	requests, fields prometheus.Collector // the vectors of HTTPRequests and UnknownFields
}

func newResource(reg prometheus.Registerer, name string) *Resource {
	labels := prometheus.Labels{"resource": name}
	counters := func(name, help string, more ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "storestream", Name: name, Help: help,
			ConstLabels: labels}, more)
		reg.MustRegister(v)
		return v
	}
	gauges := func(name, help string, more ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "storestream", Name: name, Help: help,
			ConstLabels: labels}, more)
		reg.MustRegister(v)
		return v
	}
	counter := func(name, help string) prometheus.Counter { return counters(name, help).WithLabelValues() }
	gauge := func(name, help string) prometheus.Gauge { return gauges(name, help).WithLabelValues() }
	requests := counters("http_requests_total",
		"Requests to the service by status code. 0 means no answer.", "code")
	fields := counters("unknown_fields_total",
		"Fields of the service that the schema does not know, once a name.", "field")
	r := &Resource{
		Lag: newLag(labels),
		Settled: gauge("settled_timestamp_seconds",
			"All rows with an earlier updated_at are published, and no more can appear."),
		Swept: gauge("swept_timestamp_seconds", "When the last sweep ended. Before that, when the first one "+
			"became due. 0: unknown."),
		SweepInterval: gauge("sweep_interval_seconds",
			"sweep.interval. 0: sweeps run only on request."),
		SweepLeft: gauge("sweep_left",
			"1 while the last sweep left differences as they are. `watermark list` names them with the reason."),
		SweepFound: gauges("sweep_found",
			"Rows that the last sweep found to differ: missing, stale, extra.", "kind").WithLabelValues,
		PollInterval:   gauge("poll_interval_seconds", "resources.*.interval."),
		FirstLoad:      gauge("first_load", "1 while no pass has met every change yet."),
		Owned:          gauge("owned", "1 while this instance polls the resource."),
		DedupBytes:     gauge("dedup_bytes", "Memory of the rows that later reads may return again."),
		LettersInTopic: gauge("dead_letters_in_topic", "Rows that are in the dead-letter topic now."),
		SettlingDelayed: gauge("settling_delayed",
			"1 while polls succeed and settled stands still. The status page has the reason."),
		Blocked: gauge("blocked", "1 while the resource is blocked: polls stop at a fault that a person has to "+
			"correct, or at a limit. No rows are published, or all but those that the status page and "+
			"`watermark list` name."),
		Stalled: gauge("stalled", "1 while an instance has the resource, according to the consumer group, and its "+
			"watermark is not written. Every instance reports it."),
		RowsRead:      counter("rows_read_total", "Rows read from the source, repeats included."),
		RowsPublished: counter("rows_published_total", "Rows committed to the topic."),
		LateRows:      counter("late_rows_total", "Rows that a sweep found and no poll had."),
		DedupFull: counter("dedup_full_total", "Polls that ended because the rows that have to be remembered "+
			"fill poll.memory: the resource is blocked."),
		RateLimited: counter("rate_limited_seconds_total",
			"Seconds waited because the service asked for fewer requests."),
		PagePasses:  counter("page_passes_total", "Passes over the pages of a day that did not fit one page."),
		SQLTimeouts: counter("sql_timeouts_total", "Statements that the database cancelled."),
		PollDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "storestream", Name: "poll_duration_seconds", ConstLabels: labels,
			Help:    "How long a poll took, from its start to its last commit.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 14),
		}),
		Suppressed: counters("rows_suppressed_total", "Rows read and not published.", "reason").WithLabelValues,
		DeadLetters: counters("dead_letters_total",
			"Rows written to the dead-letter topic.", "reason").WithLabelValues,
		Polls: counters("polls_total", "Polls by outcome: ok, failed, blocked (the resource is blocked).",
			"outcome").WithLabelValues,
		SweepDifferences: counters("sweep_differences_total",
			"Differences found by sweeps: missing, stale, extra.", "kind").WithLabelValues,
		HTTPRequests: requests.WithLabelValues, UnknownFields: fields.WithLabelValues,
		requests: requests, fields: fields,
	}
	reg.MustRegister(r.Lag, r.PollDuration)
	r.begin()
	return r
}

// begin makes every counter begin with 0 and not with its first event, or no rate would show that event.
func (r *Resource) begin() {
	for _, reason := range []string{Repeat, BeforeStart, Deferred} {
		r.Suppressed(reason)
	}
	for _, outcome := range []string{"ok", "failed", "blocked"} {
		r.Polls(outcome)
	}
	for _, kind := range []string{"missing", "stale", "extra"} {
		r.SweepDifferences(kind)
		r.SweepFound(kind)
	}
	r.DeadLetters("row")
	r.HTTPRequests("200")
}

// SetWatermark sets what w says. A time that is not known stays as it is.
func (r *Resource) SetWatermark(w *watermark.Watermark) {
	if w.Settled != schemas.MinInstant {
		r.Settled.Set(float64(w.Settled) / 1e6)
	}
	if swept := w.SweptSince(); swept != schemas.MinInstant {
		r.Swept.Set(float64(swept) / 1e6)
	}
	r.FirstLoad.Set(Bool(w.AsOf == schemas.MinInstant))
	r.SweepLeft.Set(Bool(w.SweepLeft()))
	missing, stale, extra := w.SweepFound()
	r.SweepFound("missing").Set(float64(missing))
	r.SweepFound("stale").Set(float64(stale))
	r.SweepFound("extra").Set(float64(extra))
}

// Published returns how many rows this process has published. It is shown to people, like Requests and
// Fields.
func (r *Resource) Published() int64 { return values(r.RowsPublished)[""] }

// Requests returns the number of requests to the service since the start, by status code. Code "0" means no
// answer.
func (r *Resource) Requests() map[string]int64 { return values(r.requests) }

// Fields returns the names of the fields met that the schema does not know.
func (r *Resource) Fields() []string { return slices.Sorted(maps.Keys(values(r.fields))) }

// values returns the values of a counter by its label other than resource.
func values(c prometheus.Collector) map[string]int64 {
	found := make(chan prometheus.Metric)
	go func() {
		defer close(found)
		c.Collect(found)
	}()
	counts := map[string]int64{}
	for metric := range found {
		var m dto.Metric
		if metric.Write(&m) != nil {
			continue
		}
		label := ""
		for _, l := range m.GetLabel() {
			if l.GetName() != "resource" {
				label = l.GetValue()
			}
		}
		counts[label] = int64(m.GetCounter().GetValue())
	}
	return counts
}
