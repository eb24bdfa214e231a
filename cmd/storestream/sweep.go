package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func sweepCommand(env *environment) *cobra.Command {
	o := order{Request: watermark.Request{Kind: watermark.Sweeps}, what: "a sweep"}
	cmd := &cobra.Command{
		Use:       "sweep RESOURCE...",
		ValidArgs: schemas.Names(),
		Args:      resourceArgs(0, math.MaxInt),
		Short:     "Compare the whole topic with the service, and repair it",
		Long: `Asks the running instance to compare the whole topic with the service and to
repair the topic. A sweep finds the changes that no poll can see: updates that
left updated_at alone, rows that came too late, and records of other programs.

The instance looks twice at each row that differs, the overlap apart, before it
repairs it. Polls go on. Over REST a sweep shares the service's rate limit.

It writes a tombstone for each row that the service no longer has, or reports
the row if sweep.deletes is report. If the service shows no row at all, it
deletes none. On one UTC day sweeps and erase delete 100 rows of a resource at
most, or a hundredth of its topic if that is more. If more are due, they all
stay, and the sweep gives their number. Make sure that the service has deleted
them. Then repeat the sweep with that number in --confirm-deletes.

It asks before it begins. Without a terminal it needs --yes. With --wait it
stays until the sweeps are done, and exits with 3 if a difference is left.`,
		Example: "  storestream sweep orders order_items\n  storestream sweep --all --yes --wait",
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.send(env, cmd, unique(args), "Read topic and service in full, publish every row that differs, "+
			"and delete from the topic what the service no longer has (sweep.deletes)?", nil)
	}
	return cmd
}

// sweepText returns the result of a sweep in a line.
func sweepText(name string, s *watermark.Swept) string {
	text := fmt.Sprintf("%s: swept %s: %s missing, %s stale, %s extra; %s published, %s, %s", name,
		terminal.Plural(s.SourceRows, "row"), terminal.Count(s.Missing), terminal.Count(s.Stale),
		terminal.Count(s.Extra), terminal.Count(s.Published), terminal.Plural(s.Tombstones, "tombstone"),
		terminal.Plural(s.DeadLetters, "dead letter"))
	if s.Left != "" {
		text += ". Left: " + s.Left
	}
	return text
}
