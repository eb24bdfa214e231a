package metrics

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"
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
	SweepInterval                                prometheus.Gauge
	RowsRead, RowsPublished, LateRows, DedupFull prometheus.Counter
	RateLimited, PagePasses, SQLTimeouts         prometheus.Counter
	PollDuration                                 prometheus.Histogram

	DeadLetters      func(...string) prometheus.Counter // by the field that broke the contract, or "row"
	Polls            func(...string) prometheus.Counter // by outcome: ok, failed, blocked
	HTTPRequests     func(...string) prometheus.Counter // by status code; "0": there was no answer
	SweepDifferences func(...string) prometheus.Counter // by kind: missing, stale, extra
	ReadAsNull       func(...string) prometheus.Counter // by field: values such as NaN
	Suppressed       func(...string) prometheus.Counter // by reason: rows that were read and not published

	requests prometheus.Collector // the vector of HTTPRequests
	unknown  prometheus.Counter   // see UnknownFields

	mu    sync.Mutex
	names map[string]bool // of fields that the schema does not know
}

func newResource(reg prometheus.Registerer, name string) *Resource {
	declare, labels := promauto.With(reg), prometheus.Labels{"resource": name}
	// A counter begins with 0 and not with its first event, or no rate would show that event.
	counters := func(name, help, label string, begin ...string) *prometheus.CounterVec {
		v := declare.NewCounterVec(prometheus.CounterOpts{Namespace: "storestream", Name: name, Help: help,
			ConstLabels: labels}, []string{label})
		for _, value := range begin {
			v.WithLabelValues(value)
		}
		return v
	}
	counter := func(name, help string) prometheus.Counter {
		return declare.NewCounter(prometheus.CounterOpts{Namespace: "storestream", Name: name, Help: help,
			ConstLabels: labels})
	}
	requests := counters("http_requests_total",
		"Requests to the service, by status code. 0 means no answer.", "code", "200")
	return &Resource{
		SweepInterval: declare.NewGauge(prometheus.GaugeOpts{Namespace: "storestream", ConstLabels: labels,
			Name: "sweep_interval_seconds", Help: "The setting sweep.interval. 0: sweeps run only on request."}),
		RowsRead:      counter("rows_read_total", "Rows read from the source, repeats included."),
		RowsPublished: counter("rows_published_total", "Rows committed to the topic."),
		LateRows:      counter("late_rows_total", "Rows that a sweep found and polls had missed."),
		DedupFull:     counter("dedup_full_total", "Polls that ended because poll.memory is full."),
		RateLimited: counter("rate_limited_seconds_total",
			"Seconds of waiting for the service's rate limit."),
		PagePasses: counter("page_passes_total", "Passes over days that do not fit one page."),
		SQLTimeouts: counter("sql_timeouts_total", "Statements that PostgreSQL cancelled, or that failed after a "+
			"second or more."),
		PollDuration: declare.NewHistogram(prometheus.HistogramOpts{
			Namespace: "storestream", Name: "poll_duration_seconds", ConstLabels: labels,
			Help:    "Duration of a poll.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 14),
		}),
		Suppressed: counters("rows_suppressed_total", "Rows read and not published.", "reason",
			Repeat, BeforeStart, Deferred).WithLabelValues,
		DeadLetters: counters("dead_letters_total", "Rows written to the dead-letter topic.", "reason",
			"row").WithLabelValues,
		Polls: counters("polls_total", "Polls, by outcome: ok, failed or blocked.",
			"outcome", "ok", "failed", "blocked").WithLabelValues,
		SweepDifferences: counters("sweep_differences_total", "Differences that sweeps found: missing, "+
			"stale, extra.",
			"kind", "missing", "stale", "extra").WithLabelValues,
		ReadAsNull: counters("values_read_as_null_total", "Values read as null: NaN, infinite, false or an empty "+
			"time.", "field").WithLabelValues,
		unknown: counter("unknown_fields_total", "Fields that the schema does not have, "+
			strconv.Itoa(schemas.MaxUnknown)+" at most."),
		HTTPRequests: requests.WithLabelValues, requests: requests, names: map[string]bool{},
	}
}

// UnknownFields notes names of fields that the schema does not know, and returns how many of them are new.
// Each source has a parser of its own, which finds names again.
func (r *Resource) UnknownFields(names []string) (fresh int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.names)
	for _, name := range names {
		if len(r.names) < schemas.MaxUnknown {
			r.names[name] = true
		}
	}
	fresh = len(r.names) - before
	r.unknown.Add(float64(fresh))
	return fresh
}

// Published returns how many rows this process has published. It is shown to people, like Requests and
// Fields.
func (r *Resource) Published() int64 { return values(r.RowsPublished)[""] }

// Requests returns the number of requests to the service since the start, by status code. Code "0" means no
// answer.
func (r *Resource) Requests() map[string]int64 { return values(r.requests) }

// Fields returns the names of the fields met that the schema does not know. Only a person who has asked for
// them may see them, because a name may be a value.
func (r *Resource) Fields() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}

// values returns the values of a counter by its label other than resource, "" if it has none.
func values(c prometheus.Collector) map[string]int64 {
	found := make(chan prometheus.Metric)
	go func() {
		defer close(found)
		c.Collect(found)
	}()
	counts := map[string]int64{}
	for metric := range found {
		var m dto.Metric
		_ = metric.Write(&m) // of a counter it never fails
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
