package preflight

import (
	"context"
	"time"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// tryResources repeats the last report of each resource's owner. The other parts find most causes
// themselves, but only the owner sees some, such as a full poll.memory.
func tryResources(_ context.Context, c Config, f *findings) {
	now, marks := schemas.InstantOf(time.Now()), c.marks()
	for _, name := range c.Settings.Enabled() {
		mark := marks[name]
		t := mark.Trouble
		if t == nil {
			continue
		}
		level, what := Failure, "blocked"
		switch {
		case t.SettlingDelayed():
			level, what = Warning, "settling is delayed"
		case t.Failing:
			level, what = Warning, "failing" // it may work by now, which the other parts try
		}
		f.add(level, name, "", "%s for %s, instance %s said %s ago: %s", what, terminal.Duration(now.Sub(t.Since)),
			mark.Instance, terminal.Duration(now.Sub(mark.Written)), t.Why)
	}
	if len(f.soFar()) == 0 && len(marks) > 0 {
		f.ok("", "no owner of %s says that it is blocked", terminal.Plural(len(marks), "resource"))
	}
}
