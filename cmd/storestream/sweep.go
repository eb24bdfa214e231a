package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// sweep is what the owner's poller sweeps by: sources of its own beside the one that polls, and the topic as everybody sees it.
func (o *owner) sweep() poller.SweepConfig {
	return poller.SweepConfig{
		Interval: o.in.cfg.Sweep.Interval, Tombstone: o.in.cfg.Sweep.Deletes == config.Tombstone, Turn: o.in.sweeping,
		Source: func() poller.Source { return o.in.source(o.resource, o.metrics, o.log, nil) },
		Topic: func(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error) {
			return producer.ReadTopic(ctx, o.in.cluster, o.resource, from, fold)
		},
	}
}

func (a *app) sweepCommand() *cobra.Command {
	var all, yes, wait bool
	cmd := &cobra.Command{
		Use:   "sweep RESOURCE...",
		Short: "Compare the whole topic with the service and repair it, by the running instance",
		Long: `Asks the running instance to read the service and the topic in full, to look again at what differs after its next polls,
and to publish every row that the topic lacks or holds wrongly. So it also mends what no poll can see: updates that did not touch updated_at,
rows that came too late, and what somebody else wrote into the topic. Polls go on meanwhile; over REST it takes part of the rate that the
service allows. Where the topic has a newer state than the service shows, the service's is published once it was shown for the resource's
overlap: minutes more.

Rows that the service no longer has are reported, or get a tombstone where sweep.deletes is tombstone: after they were looked for
twice more, and not shown for the resource's overlap. They are never taken for deleted where the service shows no row at all, or
where they are more than 100 and more than a tenth of the topic's rows.

On a terminal it asks first. With --wait it stays until the sweep is done and prints what it came to.`,
		Example: "  storestream sweep orders order_items\n  storestream sweep --all --yes --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := resources(cmd, args, all)
			if err != nil {
				return err
			}
			return a.withCluster(cmd, func(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) error {
				if !yes && a.terminal && !a.confirmSweep(cfg, names) {
					return errors.New("not confirmed: nothing was asked of the running instance")
				}
				ids, err := a.askSweeps(ctx, cluster, names)
				if err != nil || !wait {
					return err
				}
				return a.followSweeps(ctx, cluster, names, ids)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay until it is done")
	return cmd
}

func (a *app) confirmSweep(cfg *config.Config, names []string) bool {
	a.print("The running instance reads %s in full, from the service and from the topic, and publishes every row that differs.\n", strings.Join(names, ", "))
	if cfg.Sweep.Deletes == config.Tombstone {
		a.print("Rows that the service no longer has get a tombstone (sweep.deletes: tombstone).\n")
	}
	return a.confirm("Sweep?")
}

// askSweeps writes the requests and returns their ids.
func (a *app) askSweeps(ctx context.Context, cluster *producer.Cluster, names []string) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	ids := map[string]int64{}
	for i, name := range names {
		id, err := cluster.Requests().Ask(ctx, watermark.Request{Resource: name, Kind: watermark.Sweeps, By: whoAmI(), At: schemas.InstantOf(time.Now())})
		if err != nil {
			asked := "none was asked for"
			if i > 0 {
				asked = "asked for already: " + strings.Join(names[:i], ", ")
			}
			return nil, fmt.Errorf("asking for a sweep of %s (%s): %w", name, asked, err)
		}
		ids[name] = id
		a.print("%s: request %d: sweep\n", name, id)
	}
	a.print("The running instance takes it from here, one resource after the other; `storestream watermark list` and the status page show how far it is.\n")
	return ids, nil
}

// followEvery is how often --wait looks.
const followEvery = time.Second

// followSweeps prints what each sweep came to, as they are done.
func (a *app) followSweeps(ctx context.Context, cluster *producer.Cluster, names []string, ids map[string]int64) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var last error
	for open := len(names); open > 0; {
		look, cancel := context.WithTimeout(ctx, brokerPatience)
		marks, err := producer.ReadWatermarks(look, cluster)
		cancel()
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			last = err // it may come back; whoever waits can interrupt
		}
		for _, name := range names {
			if id, waiting := ids[name]; waiting && swept(marks[name], id) {
				delete(ids, name)
				open--
				a.print("%s\n", a.sweptText(name, marks[name]))
			}
		}
		if open == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
	return nil
}

// swept says whether the request with this id was carried out, or a later one in its place.
func swept(mark watermark.Watermark, id int64) bool {
	return mark.Swept != nil && mark.Swept.Request >= id
}

// sweptText is what a sweep came to, in a line.
func (a *app) sweptText(name string, mark watermark.Watermark) string {
	s := mark.Swept
	text := fmt.Sprintf("%s: swept %s: ", name, terminal.Plural(s.SourceRows, "row"))
	if s.Missing+s.Stale+s.Extra == 0 {
		text += a.paint.As(terminal.Green, "the topic was right")
	} else {
		text += fmt.Sprintf("%s missing, %s stale, %s extra; %s published, %s", terminal.Count(s.Missing), terminal.Count(s.Stale), terminal.Count(s.Extra),
			terminal.Count(s.Published), terminal.Plural(s.Tombstones, "tombstone"))
	}
	if s.DeadLetters > 0 {
		text += "; " + terminal.Plural(s.DeadLetters, "row") + " cannot be published (dead letters)"
	}
	if s.Left != "" {
		text += ". " + a.paint.As(terminal.Yellow, "Left: "+s.Left)
	}
	return text
}
