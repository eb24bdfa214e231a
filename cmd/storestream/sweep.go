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
		Long: `Asks the running instance to read the service and the topic in full, to look again at what
differs after its next polls, and to publish every row that the topic lacks or holds wrongly. So it also
repairs what no poll can see: updates that did not touch updated_at, rows that came too late, and what
somebody else wrote into the topic. What differs is looked at twice, the resource's overlap apart, before
it is repaired. Polls go on meanwhile; over REST a sweep takes part of the rate that the service allows.

Rows that the service no longer has get a tombstone, or are only reported where sweep.deletes is report.
They are never taken for deleted where the service shows no row at all. In a day (UTC) 100 rows of a
resource may be deleted, or a hundredth of the topic's rows if that is more: sweeps and erase share this
budget. If more are due, they stay, and the sweep says how many. Look in the service whether they were
deleted. If so, --confirm-deletes with that number lets them go; if it meets more than that, they all
stay.

It asks first; where there is no terminal, it needs --yes. It says who takes the requests, or what each waits
for. With --wait it stays until the sweeps are done, says what each is at and what it came to, and exits with
3 if some of what differs was left as it is.`,
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
