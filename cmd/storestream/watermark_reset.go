package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func watermarkReset(env *environment) *cobra.Command {
	var to string
	var all, yes, stay bool
	cmd := &cobra.Command{
		Use:       "reset RESOURCE... --to TIME",
		ValidArgs: schemas.Names(),
		Short:     "Publish rows again from a time on (replay)",
		Long: `Asks the running instance to publish again every row with updated_at at or after TIME, each at
its newest state, without a restart. A consumer sees those rows a second time. TIME is RFC 3339, or a day
(its start in UTC). It says about how many records that are, and asks. Where there is no terminal it needs
--yes. With --wait it stays until every row is published, and says when the request begins or ceases to
wait.`,
		Example: "  storestream watermark reset orders order_items --to 2026-11-20\n" +
			"  storestream watermark reset --all --to 2026-11-20T09:30:00Z --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := chooseResources(cmd, args, all)
			if err != nil {
				return err
			}
			at, err := resetTime(cmd, to, time.Now())
			if err != nil {
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
				f := newFollower(env, cfg, cluster)
				if err := explainReset(cmd.Context(), f, names, at); err != nil {
					return err
				}
				if !yes && !env.confirm("Publish these again?") {
					return errNotConfirmed
				}
				asked, err := ask(cmd.Context(), cluster, names, watermark.Request{Kind: watermark.Reset, To: &at})
				if err != nil {
					return err
				}
				for _, name := range names {
					env.print("%s: asked for a replay from %s\n", name, at)
				}
				f.sayWhoTakes(cmd.Context(), names, "; `storestream watermark list` shows how far it is")
				if !stay {
					return nil
				}
				return followReplays(cmd.Context(), f, asked)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "",
		"`TIME` from which rows are published again: 2026-11-20T09:30:00Z or 2026-11-20")
	cmd.Flags().BoolVar(&all, "all", false, "all enabled resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&stay, "wait", false, "stay until it is done")
	return cmd
}

// resetTime reads TIME, which must not lie in the future, because there are no rows to publish again.
func resetTime(cmd *cobra.Command, text string, now time.Time) (schemas.Instant, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	if err != nil || at.After(now) {
		return 0, usagef(cmd, "--to %q: expected a time that is over, in RFC 3339 with a zone, such as "+
			"2026-11-20T09:30:00Z, or a day, such as 2026-11-20", text)
	}
	return max(schemas.InstantOf(at), schemas.MinInstant), nil
}

// explainReset says how much of each resource is published again, and who will do it.
func explainReset(ctx context.Context, f *follower, names []string, at schemas.Instant) error {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	resources, err := f.glance(ctx)
	if err != nil {
		return err
	}
	f.env.print("Every row with updated_at at or after %s is published again, at its newest state, and "+
		"consumers see it a second time:\n\n", at)
	t := f.env.table("RESOURCE", "SETTLED NOW", "ROWS, AT MOST", "OWNER").Numbers(2)
	for _, name := range names {
		records, err := producer.RecordsSince(ctx, f.cluster, name, at)
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing to publish again
			return err
		}
		r := resources(name)
		t.Row(name, pointerText(r.Settled), terminal.Count(records), ownerText(r))
	}
	if err := t.Print(f.env.stdout); err != nil {
		return err
	}
	f.env.print("\nWhere no instance owns a resource the request waits for one, 7 days at least.\n")
	return nil
}

// followReplays prints how many rows each replay published, as they are done.
func followReplays(ctx context.Context, f *follower, asked []watermark.Request) error {
	var refused []error
	err := f.follow(ctx, asked, (*following).replayed, func(r *following, mark watermark.Watermark) {
		if done := mark.Replayed; done != nil && r.is(done.RequestUID) {
			f.say("%s: published again: %s since %s, in %s\n", r.Resource, terminal.Plural(done.Rows, "row"),
				done.From, terminal.Duration(done.Ended.Sub(done.Began)))
			return
		}
		refused = append(refused, fmt.Errorf("%s: the instance has not replayed it: see its log", r.Resource))
	}, replayStep)
	return errors.Join(append(refused, err)...)
}

// replayStep says that a replay is in hand.
func replayStep(r *following, resources func(string) health.Resource) step {
	if !r.taken || resources(r.Resource).Mark.Replay == nil {
		return step{}
	}
	return step{"in hand", "the replay is in hand: it is over with the first complete pass that began after it"}
}
