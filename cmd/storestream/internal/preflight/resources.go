package preflight

import (
	"context"
	"errors"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// tryResources repeats the last report of each resource's owner. The watermark has the reason if it is
// blocked. The other parts find most causes themselves, but only the owner sees some, such as a full
// poll.memory. If a watermark cannot be read, the part "kafka" reports it.
func tryResources(_ context.Context, c Config, f *findings) {
	now, said, found := schemas.InstantOf(time.Now()), 0, false
	marks := c.marks()
	for _, name := range c.Settings.Enabled() {
		mark, written := marks[name]
		if !written {
			continue
		}
		said++
		h, age := mark.Trouble, now.Sub(mark.Written)
		if h == nil {
			continue
		}
		found = true
		gone := age > health.StalledAfter(c.Settings.Resources[name].Interval)
		since, by, do := terminal.Duration(now.Sub(h.Since)), "", ""
		if gone {
			by = ", as instance " + mark.Instance + " said " + terminal.Duration(age) + " ago"
			do = "if that is mended, start an instance: it goes on by itself"
		}
		switch {
		case h.SettlingDelayed():
			f.add(Warning, name, do, "rows are published, but settled stands still for %s%s: %s", since, by, h.Why)
		case h.Failing && gone: // it may work by now, which the other parts try
			f.add(Warning, name, do, "was failing for %s%s: %s", since, by, h.Why)
		case h.Failing:
			f.add(Failure, name, "", "failing for %s: %s", since, h.Why)
		case h.Publishes:
			f.add(Failure, name, do, "blocked for %s%s, other rows go on: %s", since, by, h.Why)
		default:
			f.add(Failure, name, do, "blocked for %s%s, nothing is published: %s", since, by, h.Why)
		}
	}
	if said > 0 && !found {
		f.ok("", "no owner of %s says that it is blocked", terminal.Plural(said, "resource"))
	}
}

// readMarks reads the watermarks, once for all parts. It takes at most half of a part's time. So if a broker
// does not answer, the part "database" has time for its own questions.
func readMarks(ctx context.Context, c Config, within time.Duration) map[string]watermark.Watermark {
	ctx, cancel := context.WithTimeout(ctx, min(connect.BrokerPatience, within/2))
	defer cancel()
	marks, err := producer.ReadWatermarks(ctx, c.Cluster)
	if err != nil && !errors.As(err, new(*producer.UnreadableError)) {
		return nil
	}
	return marks
}
