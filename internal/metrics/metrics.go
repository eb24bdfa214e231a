// Package metrics declares storestream's metrics, under the names that docs/reference.md promises. It is a
// leaf: the code that sees an event counts it here, and no rule depends on a count.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Set is all metrics of one process.
type Set struct {
	// Kafka has the counters that the clients of all resources share.
	Kafka *Kafka

	lags *lags
	// By resource.
	settled, owned, dedupBytes, lettersInTopic *prometheus.GaugeVec
	settlingDelayed, blocked, stalled          *prometheus.GaugeVec
	firstLoad, pollInterval                    *prometheus.GaugeVec
	swept, sweepInterval, sweepLeft            *prometheus.GaugeVec
	sweepFound                                 *prometheus.GaugeVec // by kind too
	rowsRead, rowsPublished, late, dedupFull   *prometheus.CounterVec
	rateLimited, pagePasses, sqlTimeouts       *prometheus.CounterVec
	pollDuration                               *prometheus.HistogramVec
	// By resource and another label.
	suppressed, deadLetters, polls, httpRequests, sweepDiffs, unknownFields *prometheus.CounterVec
}

// New declares the metrics in reg.
func New(reg prometheus.Registerer) *Set {
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		opts := prometheus.CounterOpts{Namespace: "storestream", Name: name, Help: help}
		v := prometheus.NewCounterVec(opts, append([]string{"resource"}, more...))
		reg.MustRegister(v)
		return v
	}
	gauge := func(name, help string, more ...string) *prometheus.GaugeVec {
		opts := prometheus.GaugeOpts{Namespace: "storestream", Name: name, Help: help}
		v := prometheus.NewGaugeVec(opts, append([]string{"resource"}, more...))
		reg.MustRegister(v)
		return v
	}
	s := &Set{
		Kafka: newKafka(reg),
		lags:  newLags(),
		settled: gauge("settled_timestamp_seconds",
			"All rows with an earlier updated_at are published, and no more can appear."),
		swept: gauge("swept_timestamp_seconds", "When the last sweep ended. Before that, when the first one "+
			"became due. 0: unknown."),
		sweepInterval: gauge("sweep_interval_seconds",
			"sweep.interval. 0: sweeps run only on request."),
		sweepLeft: gauge("sweep_left",
			"1 while the last sweep left differences as they are. `watermark list` names them with the reason."),
		sweepFound: gauge("sweep_found",
			"Rows that the last sweep found to differ: missing, stale, extra.", "kind"),
		pollInterval:   gauge("poll_interval_seconds", "resources.*.interval."),
		firstLoad:      gauge("first_load", "1 while no pass has met every change yet."),
		owned:          gauge("owned", "1 while this instance polls the resource."),
		dedupBytes:     gauge("dedup_bytes", "Memory of the rows that later reads may return again."),
		lettersInTopic: gauge("dead_letters_in_topic", "Rows that are in the dead-letter topic now."),
		settlingDelayed: gauge("settling_delayed",
			"1 while polls succeed and settled stands still. The status page has the reason."),
		blocked: gauge("blocked", "1 while the resource is blocked: polls stop at a fault that a person has to "+
			"correct, or at a limit. No rows are published, or all but those that the status page and "+
			"`watermark list` name."),
		stalled: gauge("stalled", "1 while an instance has the resource, according to the consumer group, and its "+
			"watermark is not written. Every instance reports it."),
		rowsRead:      counter("rows_read_total", "Rows read from the source, repeats included."),
		rowsPublished: counter("rows_published_total", "Rows committed to the topic."),
		late:          counter("late_rows_total", "Rows that a sweep found and no poll had."),
		dedupFull: counter("dedup_full_total", "Polls that ended because the rows that have to be remembered "+
			"fill poll.memory: the resource is blocked."),
		rateLimited: counter("rate_limited_seconds_total",
			"Seconds waited because the service asked for fewer requests."),
		pagePasses:  counter("page_passes_total", "Passes over the pages of a day that did not fit one page."),
		sqlTimeouts: counter("sql_timeouts_total", "Statements that the database cancelled."),
		suppressed:  counter("rows_suppressed_total", "Rows read and not published.", "reason"),
		deadLetters: counter("dead_letters_total", "Rows written to the dead-letter topic.", "reason"),
		polls: counter("polls_total", "Polls by outcome: ok, failed, held (the resource is blocked).",
			"outcome"),
		httpRequests: counter("http_requests_total",
			"Requests to the service by status code. 0 means no answer.", "code"),
		sweepDiffs: counter("sweep_differences_total",
			"Differences found by sweeps: missing, stale, extra.", "kind"),
		unknownFields: counter("unknown_fields_total",
			"Fields of the service that the schema does not know, once a name.", "field"),
		pollDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "storestream", Name: "poll_duration_seconds",
			Help:    "How long a poll took, from its start to its last commit.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 14),
		}, []string{"resource"}),
	}
	reg.MustRegister(s.lags, s.pollDuration)
	return s
}

// Resource is the metrics of the resource with this name.
func (s *Set) Resource(name string) *Resource {
	by := func(v *prometheus.CounterVec) Counters {
		return func(value string) prometheus.Counter { return v.WithLabelValues(name, value) }
	}
	r := &Resource{
		Lag:             s.lags.of(name),
		Settled:         s.settled.WithLabelValues(name),
		Swept:           s.swept.WithLabelValues(name),
		SweepInterval:   s.sweepInterval.WithLabelValues(name),
		SweepLeft:       s.sweepLeft.WithLabelValues(name),
		PollInterval:    s.pollInterval.WithLabelValues(name),
		FirstLoad:       s.firstLoad.WithLabelValues(name),
		Owned:           s.owned.WithLabelValues(name),
		DedupBytes:      s.dedupBytes.WithLabelValues(name),
		LettersInTopic:  s.lettersInTopic.WithLabelValues(name),
		SettlingDelayed: s.settlingDelayed.WithLabelValues(name),
		Blocked:         s.blocked.WithLabelValues(name),
		Stalled:         s.stalled.WithLabelValues(name),
		RowsRead:        s.rowsRead.WithLabelValues(name),
		RowsPublished:   s.rowsPublished.WithLabelValues(name),
		LateRows:        s.late.WithLabelValues(name),
		DedupFull:       s.dedupFull.WithLabelValues(name),
		RateLimited:     s.rateLimited.WithLabelValues(name),
		PagePasses:      s.pagePasses.WithLabelValues(name),
		SQLTimeouts:     s.sqlTimeouts.WithLabelValues(name),
		PollDuration:    s.pollDuration.WithLabelValues(name),
		DeadLetters:     by(s.deadLetters), Polls: by(s.polls), HTTPRequests: by(s.httpRequests),
		SweepDifferences: by(s.sweepDiffs), UnknownFields: by(s.unknownFields), Suppressed: by(s.suppressed),
		SweepFound: func(kind string) prometheus.Gauge { return s.sweepFound.WithLabelValues(name, kind) },
	}
	// Every counter begins with 0 and not with its first event, or no rate would show that event.
	begin(r.Suppressed, Repeat, BeforeStart, Deferred)
	begin(r.Polls, "ok", "failed", "blocked")
	begin(r.SweepDifferences, "missing", "stale", "extra")
	begin(r.SweepFound, "missing", "stale", "extra")
	begin(r.DeadLetters, "row")
	begin(r.HTTPRequests, "200")
	return r
}

func begin[M prometheus.Metric](c func(value string) M, values ...string) {
	for _, value := range values {
		c(value)
	}
}

// Requests returns the number of requests to the service since the start, by resource and status code. Code
// "0" means no answer. It is shown to people, like Published and Fields.
func (s *Set) Requests() map[string]map[string]int64 {
	sent := make(map[string]map[string]int64)
	each(s.httpRequests, func(labels map[string]string, value float64) {
		resource := labels["resource"]
		if sent[resource] == nil {
			sent[resource] = make(map[string]int64)
		}
		sent[resource][labels["code"]] = int64(value)
	})
	return sent
}

// Published is how many rows this process has published, by resource.
func (s *Set) Published() map[string]int64 {
	rows := make(map[string]int64)
	each(s.rowsPublished, func(labels map[string]string, value float64) {
		rows[labels["resource"]] = int64(value)
	})
	return rows
}

// Fields is the fields met that the schemas do not know, by resource.
func (s *Set) Fields() map[string][]string {
	met := make(map[string][]string)
	each(s.unknownFields, func(labels map[string]string, _ float64) {
		met[labels["resource"]] = append(met[labels["resource"]], labels["field"])
	})
	for _, fields := range met {
		slices.Sort(fields)
	}
	return met
}

// each calls take with every series of a counter.
func each(v *prometheus.CounterVec, take func(labels map[string]string, value float64)) {
	found := make(chan prometheus.Metric)
	go func() {
		defer close(found)
		v.Collect(found)
	}()
	for metric := range found {
		var m dto.Metric
		if metric.Write(&m) != nil {
			continue
		}
		labels := make(map[string]string)
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		take(labels, m.GetCounter().GetValue())
	}
}
