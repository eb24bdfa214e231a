package metrics

import "github.com/prometheus/client_golang/prometheus"

// Reasons for which a row that was read is not published.
const (
	Repeat      = "repeat"       // a repeat: published before, as it is
	BeforeStart = "before_start" // older than the start of the read
	Deferred    = "deferred"     // older than the published version: deferred until its second look
)

// Resource is the metrics of one resource.
type Resource struct {
	Lag                                          *Lag
	Settled, Owned                               prometheus.Gauge
	Swept, SweepInterval, SweepLeft              prometheus.Gauge
	FirstLoad, PollInterval                      prometheus.Gauge
	DedupBytes, LettersInTopic                   prometheus.Gauge
	SettlingDelayed, Blocked, Stalled            prometheus.Gauge
	RowsRead, RowsPublished, LateRows, DedupFull prometheus.Counter
	RateLimited, PagePasses, SQLTimeouts         prometheus.Counter
	PollDuration                                 prometheus.Observer
	DeadLetters                                  Counters // by the field that broke the contract, or "row"
	Polls                                        Counters // by outcome: ok, failed, blocked
	HTTPRequests                                 Counters // by status code; "0": there was no answer
	SweepDifferences                             Counters // by kind: missing, stale, extra
	SweepFound                                   Gauges   // by the same kinds, in the last one
	UnknownFields                                Counters // by name: fields that the schema does not know
	Suppressed                                   Counters // by reason: rows that were read and not published
}

// Bool is the value of a gauge that says whether something is so.
func Bool(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Counters is a counter by the value of a label.
type Counters func(value string) prometheus.Counter

// Gauges is a gauge by the value of a label.
type Gauges func(value string) prometheus.Gauge

// SetSweepFound sets how many rows the last sweep found to differ.
func (r *Resource) SetSweepFound(missing, stale, extra int) {
	r.SweepFound("missing").Set(float64(missing))
	r.SweepFound("stale").Set(float64(stale))
	r.SweepFound("extra").Set(float64(extra))
}
