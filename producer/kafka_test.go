//go:build kafka

package producer_test

import (
	"testing"

	"github.com/storestream/storestream/internal/servers"
)

// plainStage is an Apache Kafka: what counts for fencing, settings and record times is what it does, not what
// the embedded broker does.
func plainStage(t *testing.T) *stage {
	t.Helper()
	return setUp(t, nil, servers.KafkaForTest(t, servers.KafkaConfig{}).Brokers())
}
