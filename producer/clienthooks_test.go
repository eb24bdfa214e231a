//go:build !kafka

package producer_test

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/producer"
)

// A broker that is down: the client has a connection to the seed and one to the broker, of one address, and
// tries both. Whoever counts equal lines must see that they are.
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
