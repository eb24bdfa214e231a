package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

var errNotConfirmed = errors.New("not confirmed: nothing was asked of the running instance")

func sweepCommand(env *environment) *cobra.Command {
	var all, yes, stay bool
	var confirmed int
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

It says which requests have to wait: where no instance has the resource, or its owner is blocked or fails.

It asks first; where there is no terminal, it needs --yes. With --wait it stays until the sweep is done,
says when it begins or ceases to wait and for what, when it has begun, and what it came to, and exits with 3
if some of what differs was left as it is.`,
		Example: "  storestream sweep orders order_items\n  storestream sweep --all --yes --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := chooseResources(cmd, args, all)
			if err != nil {
				return err
			}
			if err := checkConfirmed(cmd, confirmed, 1); err != nil {
				return err
			}
			if err := env.mayAsk(cmd, yes); err != nil {
				return err
			}
			cfg, err := env.config()
			if err != nil {
				return err
			}
			if all {
				if names, err = enabled(cfg); err != nil {
					return err
				}
			}
			return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
				if !yes && !confirmSweep(env, cfg, names) {
					return errNotConfirmed
				}
				return sweep(cmd.Context(), env, cfg, cluster, names, confirmed, stay)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all enabled resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().IntVar(&confirmed, confirmDeletes, 0,
		"`N` rows of each resource, or fewer, were deleted in the service: delete them, even beyond the day's "+
			"budget")
	cmd.Flags().BoolVar(&stay, "wait", false, "stay until it is done")
	return cmd
}

// confirmDeletes is the flag of sweep and erase that gives the number of deletions that the user has checked.
const confirmDeletes = "confirm-deletes"

// checkConfirmed checks the number of confirmDeletes, if it was given.
func checkConfirmed(cmd *cobra.Command, confirmed, least int) error {
	if cmd.Flags().Changed(confirmDeletes) && confirmed < least {
		return usagef(cmd, "--%s %d: expected %d or more", confirmDeletes, confirmed, least)
	}
	return nil
}

func confirmSweep(env *environment, cfg *config.Config, names []string) bool {
	env.print("The running instance reads %s in full, from the service and from the topic, and publishes every "+
		"row that differs.\n", strings.Join(names, ", "))
	if cfg.Sweep.Deletes == config.Tombstone {
		env.print("Rows that the service no longer has get a tombstone (sweep.deletes: tombstone).\n")
	}
	return env.confirm("Sweep?")
}

// sweep asks for the sweeps, and stays until they are done if it shall.
func sweep(ctx context.Context, env *environment, cfg *config.Config, cluster *producer.Cluster,
	names []string, confirmed int, stay bool) error {
	r := watermark.Request{Kind: watermark.Sweeps, ConfirmedDeletes: confirmed}
	asked, err := ask(ctx, cluster, names, r)
	if err != nil {
		return err
	}
	for _, r := range asked {
		env.print("%s: asked for a sweep\n", r.Resource)
	}
	f := newFollower(env, cfg, cluster)
	f.sayWhoTakes(ctx, names, ", one resource after the other")
	env.print("`storestream watermark list` and the status page show how far it is.\n")
	if !stay {
		return nil
	}
	return followSweeps(ctx, f, asked)
}

// followSweeps prints what each sweep came to, as they are done.
func followSweeps(ctx context.Context, f *follower, asked []watermark.Request) error {
	var left []string
	err := f.follow(ctx, asked, (*following).swept, func(r *following, mark watermark.Watermark) {
		f.say("%s\n", sweepText(f.env.paint, r.Resource, mark.Swept))
		if mark.Swept.Left != "" {
			left = append(left, r.Resource)
		}
	}, f.sweepStep)
	if err != nil || len(left) == 0 {
		return err
	}
	return differentError{errors.New("different from the service still: " + strings.Join(left, ", "))}
}

// sweepStep returns the step of a sweep that was taken. The watermark does not tell which rows the sweep
// looks at again.
func (f *follower) sweepStep(r *following, resources func(string) health.Resource) step {
	now := resources(r.Resource)
	sweep := now.Mark.Sweep
	switch {
	case !r.taken || sweep == nil:
		return step{}
	case sweep.Tried != nil:
		return step{"begun", fmt.Sprintf("the sweep has begun: it reads topic and service in full. If rows "+
			"differ, it looks at them again, and once more an overlap (%s) later, three times at most",
			terminal.Duration(f.cfg.Resources[r.Resource].Overlap))}
	case now.Mark.Replay != nil:
		return step{"replay", "the sweep waits until the replay is over"}
	}
	for _, name := range schemas.Names() {
		other := resources(name)
		if name != r.Resource && other.Owner == now.Owner && other.Mark.Sweep != nil &&
			other.Mark.Sweep.Tried != nil {
			return step{"turn", fmt.Sprintf("the sweep waits until the one of %s has finished reading: %s reads "+
				"for one at a time", name, now.Owner)}
		}
	}
	return step{}
}

// sweepText returns the result of a sweep in a line.
func sweepText(paint terminal.Paint, name string, s *watermark.Swept) string {
	text := fmt.Sprintf("%s: swept %s: ", name, terminal.Plural(s.SourceRows, "row"))
	if s.Missing+s.Stale+s.Extra == 0 {
		text += paint.As(terminal.Green, "the topic was right")
	} else {
		text += fmt.Sprintf("%s missing, %s stale, %s extra; %s published, %s", terminal.Count(s.Missing),
			terminal.Count(s.Stale), terminal.Count(s.Extra), terminal.Count(s.Published),
			terminal.Plural(s.Tombstones, "tombstone"))
	}
	if s.DeadLetters > 0 {
		text += "; " + terminal.Plural(s.DeadLetters, "row") + " cannot be published (dead letters)"
	}
	if s.Left != "" {
		text += ". " + paint.As(terminal.Yellow, "Left: "+s.Left)
	}
	return text
}
