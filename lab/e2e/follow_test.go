package e2e

import (
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Rows change while they are read, storestream is stopped and started anew without any local state, and is
// killed. When the shop falls silent the topics are the service; no key has stepped back and no version is
// there twice.
func TestTopicsConvergeThroughTrafficRestartsAndCrashes(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: storefake.Config{Seed: 3,
		Size: storefake.Size{Users: 300, Orders: 1500, Products: 200}}})
	s.fake.StartTraffic(60)
	for round := range 3 {
		p := s.spawn("run")
		s.changes(300)
		if round%2 == 0 {
			p.stop()
		} else {
			p.kill()
		}
		s.changes(60)
	}
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	s.spawn("run")
	for resource, records := range s.converge() {
		inOrder(t, resource, records)
	}
}

// changes waits for n more changes of the shop.
func (s *stack) changes(n int64) {
	s.t.Helper()
	target := s.fake.Changes() + n
	eventually(s.t, "traffic", func() (bool, string) { return s.fake.Changes() >= target, "" })
}
