package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Whatever a request meets, the topics become the service; while it lasts nothing is lost, stale or twice.
func TestWhateverRequestsMeetTheTopicsBecomeTheService(t *testing.T) {
	t.Parallel()
	shared := &stack{t: t, dir: t.TempDir()}
	shared.openBroker(setup{})
	for n, shares := range []map[storefake.Fault]float64{
		{storefake.ServerError: .1, storefake.ServerErrorHTML: .1, storefake.TooMany: .1},
		{storefake.Revoke: .05, storefake.Unauthorized: .05, storefake.Redirect: .01},
		{storefake.Truncated: .1, storefake.Cut: .1, storefake.Reset: .1},
		{storefake.Endless: .01, storefake.Slow: .02, storefake.Hang: .02},
		{storefake.MoreForever: .1},
	} {
		t.Run(fmt.Sprint(shares), func(t *testing.T) {
			t.Parallel()
			if n > 1 {
				furtherScenario(t)
			}
			fake := smallShop(uint64(30 + n))
			fake.Readings.MaxPage = 100
			s := start(t, setup{noPostgres: true, yaml: quick, fake: fake, beside: shared,
				prefix: fmt.Sprintf("faults%d.", n)})
			if err := s.fake.SetFaults(func(f *storefake.Faults) {
				f.Shares, f.SlowFor = shares,
					3*time.Second
			}); err != nil {
				t.Fatal(err)
			}
			s.fake.StartTraffic(30)
			p := s.spawn("run", "--set", "store.request_timeout=1s")
			p.owns(storefake.Users)
			s.changes(400)
			if err := s.fake.SetFaults(func(f *storefake.Faults) { f.Shares = nil }); err != nil {
				t.Fatal(err)
			}
			s.quiet()
			p.isReady()
		})
	}
}
