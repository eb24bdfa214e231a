package preflight

import (
	"context"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/internal/health"
)

// levels has the level of each state that is not OK. Polls that fail may work by now, which the other parts
// try. Before the first start no resource has an owner, and `run` works.
var levels = map[health.State]Level{
	health.Blocked: Failure, health.Unreadable: Failure,
	health.Failing: Warning, health.Stalled: Warning, health.Behind: Warning, health.SettlingDelayed: Warning,
	health.Incomplete: Warning, health.Paused: Warning,
	health.Unowned: Note, health.Unknown: Note,
}

// tryResources repeats the verdict of `watermark list`. The other parts find most causes themselves, but only
// an owner sees some, such as a full poll.memory.
func tryResources(ctx context.Context, c Config, f *findings) {
	all, err := overview.Read(ctx, c.Settings, c.Cluster)
	if err != nil {
		return // the part "kafka" reports it
	}
	overview.AddRefusals(ctx, c.Settings, c.Schemas, c.Cluster, all)
	for _, r := range all {
		switch level, bad := levels[r.State]; {
		case !r.Enabled && r.Unreadable == nil:
		case bad:
			f.add(level, r.Name, r.Remedy, "%s", r.Text())
		default:
			f.ok(r.Name, "%s", r.State)
		}
	}
}
