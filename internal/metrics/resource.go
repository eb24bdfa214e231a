package metrics

import "github.com/prometheus/client_golang/prometheus"

// Reasons for which a row that was read is not published.
const (
	Seen        = "seen"         // a repeat: published before, as it is
	BeforeStart = "before_start" // older than the start of the read
	Older       = "older"        // older than what was published: held back for a second look
)

// Resource is the metrics of one resource.
type Resource struct {
	Lag                                         *Lag
	Settled, Owned                              prometheus.Gauge
	Swept, SweepInterval                        prometheus.Gauge
	SeenBytes, LettersHeld                      prometheus.Gauge
	SettlingHeld, Held, Stalled                 prometheus.Gauge
	RowsRead, RowsPublished, LateRows, SeenFull prometheus.Counter
	RateLimited, PagePasses, SQLTimeouts        prometheus.Counter
	PollDuration                                prometheus.Observer
	DeadLetters                                 Counters // by the field that broke the contract, or "row"
	Polls                                       Counters // by outcome: ok, failed, held
	HTTPRequests                                Counters // by status code; "0": there was no answer
	SweepDifferences                            Counters // by kind: missing, stale, extra
	UnknownFields                               Counters // by name: fields that the schema does not know
	suppressed                                  Counters
	seen                                        prometheus.Counter
}

// Counters is a counter by the value of a label.
type Counters func(value string) prometheus.Counter

// Suppressed counts rows that were read and not published, by reason.
func (r *Resource) Suppressed(reason string) prometheus.Counter {
	if reason == Seen {
		return r.seen // an overlapping read counts one for nearly every row
	}
	return r.suppressed(reason)
}
