package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
)

var errNotConfirmed = errors.New("not confirmed: nothing was asked of the running instance")

func sweepCommand(env *environment) *cobra.Command {
	var all, yes, stay bool
	cmd := &cobra.Command{
		Use:   "sweep RESOURCE...",
		Short: "Compare the whole topic with the service and repair it, by the running instance",
		Long: `Asks the running instance to read the service and the topic in full, to look again at what
differs after its next polls, and to publish every row that the topic lacks or holds wrongly. So it also
repairs what no poll can see: updates that did not touch updated_at, rows that came too late, and what
somebody else wrote into the topic. Polls go on meanwhile; over REST a sweep takes part of the rate that
the service allows. Where the topic has a newer state than the service shows, the service's is published
once it was shown for the resource's overlap: minutes more.

Rows that the service no longer has are reported, or get a tombstone where sweep.deletes is tombstone: after
they were looked for twice more, and not shown for the resource's overlap. They are never taken for deleted
where the service shows no row at all, or where they are more than 100 and more than a tenth of the topic's
rows.

On a terminal it asks first. With --wait it stays until the sweep is done and prints what it came to.`,
		Example: "  storestream sweep orders order_items\n  storestream sweep --all --yes --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := chooseResources(cmd, args, all)
			if err != nil {
				return err
			}
			cfg, err := env.config()
			if err != nil {
				return err
			}
			return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
				if !yes && env.terminal && !confirmSweep(env, cfg, names) {
					return errNotConfirmed
				}
				return sweep(cmd.Context(), env, cluster, names, stay)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&stay, "wait", false, "stay until it is done")
	return cmd
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
func sweep(ctx context.Context, env *environment, cluster *producer.Cluster, names []string,
	stay bool) error {
	ids, err := ask(ctx, cluster, names, watermark.Request{Kind: watermark.Sweeps})
	if err != nil {
		return err
	}
	var open []sweepRequest
	for i, id := range ids {
		open = append(open, sweepRequest{names[i], id})
		env.print("%s: request %d: sweep\n", names[i], id)
	}
	env.print("The running instance takes it from here, one resource after the other; `storestream watermark " +
		"list` and the status page show how far it is.\n")
	if !stay {
		return nil
	}
	return followSweeps(ctx, env, cluster, open)
}

// followEvery is how often --wait looks.
const followEvery = time.Second

type sweepRequest struct {
	resource string
	id       int64
}

// followSweeps prints what each sweep came to, as they are done.
func followSweeps(ctx context.Context, env *environment, cluster *producer.Cluster,
	open []sweepRequest) error {
	for {
		look, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
		marks, failed := producer.ReadWatermarks(look, cluster)
		cancel()
		if errors.Is(failed, kerr.UnknownTopicOrPartition) {
			failed = nil
		}
		open = slices.DeleteFunc(open, func(r sweepRequest) bool {
			mark := marks[r.resource]
			done := swept(mark, r.id)
			if done {
				env.print("%s\n", sweepText(env.paint, r.resource, mark.Swept))
			}
			return done
		})
		if len(open) == 0 {
			return nil
		}
		if err := wait.For(ctx, followEvery); err != nil {
			return errors.Join(err, failed) // a broker that fails may come back: until an interrupt it goes on
		}
	}
}

// swept says whether the request with this id was carried out, or a later one in its place.
func swept(mark watermark.Watermark, id int64) bool {
	return mark.Swept != nil && mark.Swept.Request >= id
}

// sweepText is what a sweep came to, in a line.
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
