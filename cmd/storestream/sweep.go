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
	asked, err := ask(ctx, cluster, names, watermark.Request{Kind: watermark.Sweeps})
	if err != nil {
		return err
	}
	for _, r := range asked {
		env.print("%s: request %d: sweep\n", r.Resource, r.ID)
	}
	env.print("The running instance takes it from here, one resource after the other; `storestream watermark " +
		"list` and the status page show how far it is.\n")
	if !stay {
		return nil
	}
	return followSweeps(ctx, env, cluster, asked)
}

// followEvery is how often --wait looks.
const followEvery = time.Second

// followSweeps prints what each sweep came to, as they are done. It gives up on a request that was deleted
// with its topic before an instance took it: nobody will carry it out.
func followSweeps(ctx context.Context, env *environment, cluster *producer.Cluster,
	asked []watermark.Request) error {
	var open []*following
	for _, r := range asked {
		open = append(open, &following{Request: r})
	}
	var lost []error
	for {
		marks, failed := lookAfter(ctx, cluster, open)
		open = slices.DeleteFunc(open, func(f *following) bool {
			mark, written := marks[f.Resource]
			if !written {
				mark = watermark.New(f.Resource)
			}
			done, gone := f.over(mark)
			switch {
			case done:
				env.print("%s\n", sweepText(env.paint, f.Resource, mark.Swept))
			case gone && failed == nil:
				lost = append(lost, fmt.Errorf("%s: request %d was deleted with its topic before an instance took it: "+
					"ask again", f.Resource, f.ID))
			}
			return done || gone && failed == nil
		})
		if len(open) == 0 {
			return errors.Join(lost...)
		}
		if err := wait.For(ctx, followEvery); err != nil {
			return errors.Join(err, failed) // a broker that fails may come back: until an interrupt it goes on
		}
	}
}

// lookAfter reads the watermarks, and tells each of open which requests the topic holds.
func lookAfter(ctx context.Context, cluster *producer.Cluster, open []*following) (
	map[string]watermark.Watermark, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	requests := cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil {
		return nil, err
	}
	for _, f := range open {
		f.look(requests.After(f.Resource, -1, ""))
	}
	marks, err := producer.ReadWatermarks(ctx, cluster)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = nil
	}
	return marks, err
}

// following is a request for a sweep that somebody waits for.
type following struct {
	watermark.Request
	later []string // UIDs of those that came after it: an owner carries out the last of them in its place
	there bool     // the topic held it when it was last looked at
	taken bool     // an instance has accepted it
}

// look takes the requests for the resource that the topic holds.
func (f *following) look(held []watermark.Request) {
	i := slices.IndexFunc(held, func(r watermark.Request) bool { return r.UID == f.UID })
	if f.there = i >= 0; !f.there {
		return
	}
	for _, r := range held[i+1:] {
		if r.UID != "" && !slices.Contains(f.later, r.UID) {
			f.later = append(f.later, r.UID)
		}
	}
}

// over says whether it was carried out, or a later one in its place, and whether it is gone, so that it never
// will be. An owner of before 2026-11-22 notes no UIDs: then the id decides.
func (f *following) over(mark watermark.Watermark) (done, gone bool) {
	f.taken = f.taken || f.is(mark.RequestUID) || mark.RequestUID == "" && mark.Request >= f.ID
	if s := mark.Swept; s != nil {
		done = f.is(s.RequestUID) || mark.RequestUID == "" && s.Request >= f.ID
	}
	return done, !done && !f.there && !f.taken
}

// is says that uid is its own, or that of a later one.
func (f *following) is(uid string) bool { return uid == f.UID || slices.Contains(f.later, uid) }

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
