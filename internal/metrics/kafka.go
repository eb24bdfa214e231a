package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Kafka has the counters that all Kafka clients of a process share. Each takeover opens and closes a client
// of its own, so counters per client would say little.
type Kafka struct {
	Connects, Disconnects, ConnectErrors *prometheus.CounterVec // by node_id
	WriteBytes, ReadBytes                *prometheus.CounterVec // by node_id
	Throttled                            *prometheus.CounterVec // seconds, by node_id
	RequestErrors                        *prometheus.CounterVec // by request
	RequestDuration                      *prometheus.HistogramVec
	ProduceRecords, ProduceBytes         *prometheus.CounterVec // by topic
}

func newKafka(reg prometheus.Registerer) *Kafka {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Namespace: "storestream",
			Subsystem: "kafka", Name: name, Help: help}, []string{label})
	}
	return &Kafka{
		Connects:      counter("connects_total", "Connections opened to a broker.", "node_id"),
		Disconnects:   counter("disconnects_total", "Connections to a broker that ended.", "node_id"),
		ConnectErrors: counter("connect_errors_total", "Failed connections to a broker.", "node_id"),
		WriteBytes:    counter("write_bytes_total", "Bytes written to a broker.", "node_id"),
		ReadBytes:     counter("read_bytes_total", "Bytes read from a broker.", "node_id"),
		Throttled:     counter("throttled_seconds_total", "Seconds of waiting that a broker asked for.", "node_id"),
		RequestErrors: counter("request_errors_total",
			"Requests without a complete answer, by kind.", "request"),
		RequestDuration: promauto.With(reg).NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "storestream", Subsystem: "kafka", Name: "request_duration_seconds",
			Help:    "Duration of a request, by kind.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"request"}),
		ProduceRecords: counter("produce_records_total",
			"Records written, including those of aborted transactions.", "topic"),
		ProduceBytes: counter("produce_bytes_total", "Bytes of records written, compressed.", "topic"),
	}
}
