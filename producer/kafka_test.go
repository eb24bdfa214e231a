//go:build kafka

package producer_test

import (
	"testing"

	"github.com/storestream/storestream/internal/servers"
)

// plainStage is an Apache Kafka: fencing, settings and record times are judged there, not on the embedded
// broker.
func plainStage(t *testing.T) *stage {
	t.Helper()
	return setUp(t, nil, servers.KafkaForTest(t, servers.KafkaConfig{}).Brokers())
}
