//go:build !kafka

package producer_test

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/producer"
)

// While a broker is down the client tries two connections to one address, the seed's and the broker's. Their
// lines must be equal, so that a logger can count them as one.
func TestABrokerThatIsDownIsOneKindOfLine(t *testing.T) {
	s := newStage(t)
	core, seen := observer.New(zap.WarnLevel)
	c := s.cluster("a", func(config *producer.Config) { config.Log = zap.New(core) })
	if err := producer.EnsureTopics(s.ctx(), c); err != nil {
		t.Fatal(err)
	}
	_ = s.broker.Stop()
	ctx := s.ctx()
	for seen.FilterMessage("unable to open connection to broker").Len() < 3 && ctx.Err() == nil {
		if err := c.Ping(ctx); err == nil {
			t.Fatal("a broker that is stopped answers")
		}
	}
	lines := seen.FilterMessage("unable to open connection to broker").All()
	if len(lines) == 0 {
		t.Fatalf("nothing is said: %v", seen.All())
	}
	for _, line := range lines {
		if fields := line.ContextMap(); fields["broker"] != nil || fields["addr"] == nil {
			t.Errorf("%v", fields)
		}
	}
}
