package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func sweepCommand(env *environment) *cobra.Command {
	o := order{Request: watermark.Request{Kind: watermark.Sweeps}, what: "a sweep"}
	cmd := &cobra.Command{
		Use:       "sweep RESOURCE...",
		ValidArgs: schemas.Names(),
		Short:     "Compare the whole topic with the service and repair it, by the running instance",
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
		names, err := chooseResources(cmd, args, o.all)
		if err != nil {
			return err
		}
		explain := func(f *follower, names []string) error {
			env.print("The running instance reads %s in full, from the service and from the topic, and publishes "+
				"every row that differs.\n", strings.Join(names, ", "))
			if f.cfg.Sweep.Deletes == config.Tombstone {
				env.print("Rows that the service no longer has get a tombstone (sweep.deletes: tombstone).\n")
			}
			return nil
		}
		return o.send(env, cmd, names, explain, "Sweep?")
	}
	return cmd
}

// sweepText returns the result of a sweep in a line.
func sweepText(name string, s *watermark.Swept) string {
	text := fmt.Sprintf("%s: swept %s: ", name, terminal.Plural(s.SourceRows, "row"))
	if s.Missing+s.Stale+s.Extra == 0 {
		text += "the topic was right"
	} else {
		text += fmt.Sprintf("%s missing, %s stale, %s extra; %s published, %s", terminal.Count(s.Missing),
			terminal.Count(s.Stale), terminal.Count(s.Extra), terminal.Count(s.Published),
			terminal.Plural(s.Tombstones, "tombstone"))
	}
	if s.DeadLetters > 0 {
		text += "; " + terminal.Plural(s.DeadLetters, "row") + " cannot be published (dead letters)"
	}
	if s.Left != "" {
		text += ". Left: " + s.Left
	}
	return text
}
