//go:build kafka

package producer_test

import (
	"testing"

	"github.com/storestream/storestream/internal/servers"
)

// On Apache Kafka the tests that need no faults of a broker's are run again: fencing, settings and record times are judged there, not on the
// embedded broker.
func init() {
	plainStage = func(t *testing.T) *stage {
		kafka := servers.KafkaForTest(t, servers.KafkaConfig{})
		return setUp(t, nil, kafka.Brokers())
	}
}
