package preflight

import (
	"context"
	"strings"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/terminal"
)

// tryConfiguration lists the resources and how they are polled. The settings themselves were checked when
// they were loaded, and a mistake ended the command.
func tryConfiguration(_ context.Context, c Config, f *findings) {
	from := c.File
	if from == "" {
		from = "no file (--config), so defaults, environment and flags"
	}
	var sources []string
	for _, source := range []string{config.Postgres, config.REST} {
		var names []string
		for _, r := range c.over(source) {
			names = append(names, r.Name)
		}
		if len(names) > 0 {
			sources = append(sources, strings.Join(names, ", ")+" over "+source)
		}
	}
	f.ok("", "%s: %s", from, strings.Join(sources, "; "))
	n, memory := len(c.Settings.Enabled()), c.Settings.Poll.Memory
	f.ok("", "poll.memory: each resource remembers up to %d rows that it published lately in %s, %s for %s",
		int64(memory)/rowset.RowBytes, memory, memory*config.Size(n), terminal.Plural(n, "resource"))
	for _, name := range c.Settings.Enabled() {
		if c.Settings.Resources[name].Overlap == 0 {
			f.add(Warning, name, "set resources."+name+".overlap to longer than any transaction takes from the time "+
				"that it stamps to its first write",
				"overlap is 0: a row that becomes visible later than its updated_at is missed until a sweep finds it")
		}
	}
}
