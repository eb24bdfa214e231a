package e2e

import (
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Brokers of before 2.8 give topics no ids, and know none of the questions about producers and transactions
// that came with 2.8 and 3.0. storestream goes without them: through crashes, in `check` and in `verify`.
func TestOnABrokerWithoutTopicIDsThePromiseIsTheSame(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{embedded: true, yaml: quick, fake: smallShop(56),
		broker: servers.BrokerConfig{Options: []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0())}}})
	s.fake.StartTraffic(40)
	for range 2 {
		p := s.spawn("run")
		p.isReady()
		s.changes(100)
		p.kill()
	}
	s.spawn("run").isReady()
	s.changes(100)
	s.quiet()
	topics, err := s.admin().ListTopics(t.Context())
	if orders := topics[s.prefix+storefake.Orders]; err != nil || orders.ID != (kadm.TopicID{}) {
		t.Errorf("the topic has the id %s (%v): the test shows nothing", orders.ID, err)
	}
	s.expect(0, []string{"Nothing fails"}, "check")
	s.expect(0, []string{"Identical"}, "verify")
}
