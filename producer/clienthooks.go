package producer

import (
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/metrics"
)

// telemetry counts the requests, bytes and errors of all clients. franz-go's own plugin (kprom) counts one
// client at a time, and here clients come and go with every takeover.
type telemetry struct{ m *metrics.Kafka }

var (
	_ kgo.HookBrokerConnect       = telemetry{}
	_ kgo.HookBrokerDisconnect    = telemetry{}
	_ kgo.HookBrokerE2E           = telemetry{}
	_ kgo.HookBrokerThrottle      = telemetry{}
	_ kgo.HookProduceBatchWritten = telemetry{}
)

func (t telemetry) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		t.m.ConnectErrors.WithLabelValues(kgo.NodeName(meta.NodeID)).Inc()
		return
	}
	t.m.Connects.WithLabelValues(kgo.NodeName(meta.NodeID)).Inc()
}

func (t telemetry) OnBrokerDisconnect(meta kgo.BrokerMetadata, _ net.Conn) {
	t.m.Disconnects.WithLabelValues(kgo.NodeName(meta.NodeID)).Inc()
}

func (t telemetry) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	node, request := kgo.NodeName(meta.NodeID), kmsg.NameForKey(key)
	t.m.WriteBytes.WithLabelValues(node).Add(float64(e2e.BytesWritten))
	t.m.ReadBytes.WithLabelValues(node).Add(float64(e2e.BytesRead))
	if e2e.Err() != nil {
		t.m.RequestErrors.WithLabelValues(request).Inc()
		return
	}
	t.m.RequestDuration.WithLabelValues(request).Observe(e2e.DurationE2E().Seconds())
}

func (t telemetry) OnBrokerThrottle(meta kgo.BrokerMetadata, interval time.Duration, _ bool) {
	t.m.Throttled.WithLabelValues(kgo.NodeName(meta.NodeID)).Add(interval.Seconds())
}

func (t telemetry) OnProduceBatchWritten(_ kgo.BrokerMetadata, topic string, _ int32,
	batch kgo.ProduceBatchMetrics) {
	t.m.ProduceRecords.WithLabelValues(topic).Add(float64(batch.NumRecords))
	t.m.ProduceBytes.WithLabelValues(topic).Add(float64(batch.CompressedBytes))
}
