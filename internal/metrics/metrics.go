// Package metrics declares what storestream counts, under the names that CONTRACT.md promises. It is a leaf: whoever sees an event counts it
// here, and nobody reads a count back to decide something.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Set is all metrics of one process.
type Set struct {
	settled       *prometheus.GaugeVec
	lags          *lags
	rowsRead      *prometheus.CounterVec
	rowsPublished *prometheus.CounterVec
	suppressed    *prometheus.CounterVec
	late          *prometheus.CounterVec
	deadLetters   *prometheus.CounterVec
	polls         *prometheus.CounterVec
	pollDuration  *prometheus.HistogramVec
	httpRequests  *prometheus.CounterVec
	rateLimited   *prometheus.CounterVec
	pagePasses    *prometheus.CounterVec
	sqlTimeouts   *prometheus.CounterVec
	sweepDiffs    *prometheus.CounterVec
	owned         *prometheus.GaugeVec
	unknownFields *prometheus.CounterVec
	seenBytes     *prometheus.GaugeVec
	seenOverflow  *prometheus.CounterVec
	lettersHeld   *prometheus.GaugeVec
	settlingHeld  *prometheus.GaugeVec
	// Kafka is what the clients of all resources count together.
	Kafka *Kafka
}

// New declares the metrics in reg.
func New(reg prometheus.Registerer) *Set {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "storestream", Name: name, Help: help}, append([]string{"resource"}, labels...))
		reg.MustRegister(v)
		return v
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "storestream", Name: name, Help: help}, []string{"resource"})
		reg.MustRegister(v)
		return v
	}
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "storestream", Name: "poll_duration_seconds",
		Help: "How long a poll took, from its start to its last commit.", Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 14)}, []string{"resource"})
	reg.MustRegister(duration)
	lags := newLags()
	reg.MustRegister(lags)
	return &Set{
		settled:       gauge("settled_timestamp_seconds", "Every row with an earlier updated_at is published, and none can appear there any more."),
		lags:          lags,
		rowsRead:      counter("rows_read_total", "Rows read from the source, repetitions included."),
		rowsPublished: counter("rows_published_total", "Rows committed to the topic."),
		suppressed:    counter("rows_suppressed_total", "Rows read and not published.", "reason"),
		late:          counter("late_rows_total", "Rows that a sweep found and no poll had."),
		deadLetters:   counter("dead_letters_total", "Rows written to the dead-letter topic.", "reason"),
		polls:         counter("polls_total", "Polls by outcome: ok, failed, held.", "outcome"),
		pollDuration:  duration,
		httpRequests:  counter("http_requests_total", "Requests to the service by status code; 0 is no answer.", "code"),
		rateLimited:   counter("rate_limited_seconds_total", "Seconds waited because the service asked for fewer requests."),
		pagePasses:    counter("page_passes_total", "Passes over the pages of a day that did not fit one page."),
		sqlTimeouts:   counter("sql_timeouts_total", "Statements that the database cancelled."),
		sweepDiffs:    counter("sweep_differences_total", "Differences found by sweeps: missing, stale, extra.", "kind"),
		owned:         gauge("owned", "1 while this instance polls the resource."),
		unknownFields: counter("unknown_fields_total", "Fields of the service that the schema does not know, once a name.", "field"),
		seenOverflow:  counter("seen_overflow_total", "Rows published that could not be remembered within the memory allowed: an overlapping read repeats them."),
		seenBytes:     gauge("seen_bytes", "Memory held to recognise rows that an overlapping read returns again."),
		lettersHeld:   gauge("dead_letters_held", "Rows that stand in the dead-letter topic now."),
		settlingHeld:  gauge("settling_held", "1 while polls succeed and yet the resource settles no further; the status page says why."),
		Kafka:         newKafka(reg),
	}
}

// Resource is the metrics of one resource, label bound.
type Resource struct {
	Settled, Owned, SeenBytes            prometheus.Gauge
	Lag                                  *Lag
	RowsRead, RowsPublished, LateRows    prometheus.Counter
	RateLimited, PagePasses, SQLTimeouts prometheus.Counter
	SeenOverflow                         prometheus.Counter
	LettersHeld, SettlingHeld            prometheus.Gauge
	PollDuration                         prometheus.Observer
	seen                                 prometheus.Counter
	set                                  *Set
	name                                 string
}

// Resource binds the label. What can be counted begins with 0 and not with the first event, or no rate would show that event.
func (s *Set) Resource(name string) *Resource {
	s.begin(name)
	return &Resource{
		Settled: s.settled.WithLabelValues(name), Lag: s.lags.of(name), Owned: s.owned.WithLabelValues(name), SeenBytes: s.seenBytes.WithLabelValues(name),
		SeenOverflow: s.seenOverflow.WithLabelValues(name),
		RowsRead:     s.rowsRead.WithLabelValues(name), RowsPublished: s.rowsPublished.WithLabelValues(name), LateRows: s.late.WithLabelValues(name),
		RateLimited: s.rateLimited.WithLabelValues(name), PagePasses: s.pagePasses.WithLabelValues(name), SQLTimeouts: s.sqlTimeouts.WithLabelValues(name),
		LettersHeld: s.lettersHeld.WithLabelValues(name), SettlingHeld: s.settlingHeld.WithLabelValues(name),
		PollDuration: s.pollDuration.WithLabelValues(name), set: s, name: name, seen: s.suppressed.WithLabelValues(name, Seen),
	}
}

// begin makes the series of one resource whose second label has values known beforehand.
func (s *Set) begin(name string) {
	for _, v := range []struct {
		of     *prometheus.CounterVec
		values []string
	}{
		{s.suppressed, []string{Seen, BeforeStart, Older}},
		{s.polls, []string{"ok", "failed", "held"}},
		{s.sweepDiffs, []string{"missing", "stale", "extra"}},
		{s.deadLetters, []string{"row"}},
		{s.httpRequests, []string{"200"}},
	} {
		for _, value := range v.values {
			v.of.WithLabelValues(name, value)
		}
	}
}

// Reasons for which a row that was read is not published.
const (
	Seen        = "seen"         // published before, as it is
	BeforeStart = "before_start" // older than the start of the read
	Older       = "older"        // older than what was published; held back and looked at again
)

// Suppressed counts rows read and not published.
func (r *Resource) Suppressed(reason string) prometheus.Counter {
	if reason == Seen {
		return r.seen // an overlapping read counts one for nearly every row
	}
	return r.set.suppressed.WithLabelValues(r.name, reason)
}

// DeadLetters counts rows written to the dead-letter topic, by the field that broke the contract ("row" where it is the whole row).
func (r *Resource) DeadLetters(reason string) prometheus.Counter {
	return r.set.deadLetters.WithLabelValues(r.name, reason)
}

// Polls counts polls by outcome.
func (r *Resource) Polls(outcome string) prometheus.Counter {
	return r.set.polls.WithLabelValues(r.name, outcome)
}

// HTTPRequests counts requests by status code, "0" where there was no answer.
func (r *Resource) HTTPRequests(code string) prometheus.Counter {
	return r.set.httpRequests.WithLabelValues(r.name, code)
}

// SweepDifferences counts what sweeps found, by kind.
func (r *Resource) SweepDifferences(kind string) prometheus.Counter {
	return r.set.sweepDiffs.WithLabelValues(r.name, kind)
}

// UnknownFields counts a field that the schema does not know, once a name.
func (r *Resource) UnknownFields(field string) prometheus.Counter {
	return r.set.unknownFields.WithLabelValues(r.name, field)
}
