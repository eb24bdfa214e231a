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
	var all, yes, stay, confirm bool
	cmd := &cobra.Command{
		Use:               "sweep RESOURCE...",
		ValidArgsFunction: completeResources,
		Short:             "Compare the whole topic with the service and repair it, by the running instance",
		Long: `Asks the running instance to read the service and the topic in full, to look again at what
differs after its next polls, and to publish every row that the topic lacks or holds wrongly. So it also
repairs what no poll can see: updates that did not touch updated_at, rows that came too late, and what
somebody else wrote into the topic. Polls go on meanwhile; over REST a sweep takes part of the rate that
the service allows. Where the topic has a newer state than the service shows, the service's is published
once it was shown for the resource's overlap: minutes more.

Rows that the service no longer has get a tombstone, or are only reported where sweep.deletes is report: after
they were looked for twice more, and not shown for the resource's overlap. They are never taken for deleted
where the service shows no row at all. Where they are more than 100 and more than a hundredth of the topic's
rows they stay, and the sweep says so: --confirm-deletes, once you know that they were deleted, lets them go.

It asks first; where there is no terminal, it needs --yes. With --wait it stays until the sweep is done,
prints what it came to, and exits with 3 if some of what differs was left as it is.`,
		Example: "  storestream sweep orders order_items\n  storestream sweep --all --yes --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := chooseResources(cmd, args, all)
			if err != nil {
				return err
			}
			if err := env.mayAsk(cmd, yes, false); err != nil {
				return err
			}
			cfg, err := env.config()
			if err != nil {
				return err
			}
			return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
				if !yes && !confirmSweep(env, cfg, names) {
					return errNotConfirmed
				}
				return sweep(cmd.Context(), env, cluster, names, confirm, stay)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&confirm, "confirm-deletes", false,
		"rows that the service no longer has were deleted, however many they are")
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
	confirm, stay bool) error {
	asked, err := ask(ctx, cluster, names, watermark.Request{Kind: watermark.Sweeps, ConfirmDeletes: confirm})
	if err != nil {
		return err
	}
	for _, r := range asked {
		env.print("%s: asked for a sweep\n", r.Resource)
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

// followSweeps prints what each sweep came to, as they are done.
func followSweeps(ctx context.Context, env *environment, cluster *producer.Cluster,
	asked []watermark.Request) error {
	var left []string
	err := follow(ctx, cluster, asked, (*following).swept, func(f *following, mark watermark.Watermark) {
		env.print("%s\n", sweepText(env.paint, f.Resource, mark.Swept))
		if mark.Swept.Left != "" {
			left = append(left, f.Resource)
		}
	})
	if err != nil || len(left) == 0 {
		return err
	}
	return differentError{errors.New("different from the service still: " + strings.Join(left, ", "))}
}

// follow waits until each request was carried out, as over says, and calls done with what the watermark says
// then. It gives up on a request that was deleted with its topic before an instance took it: nobody will
// carry it out.
func follow(ctx context.Context, cluster *producer.Cluster, asked []watermark.Request,
	over func(*following, watermark.Watermark) bool, done func(*following, watermark.Watermark)) error {
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
			f.accepted(mark)
			switch {
			case over(f, mark):
				done(f, mark)
			case failed == nil && f.gone():
				lost = append(lost, fmt.Errorf("%s: the request was deleted with its topic before an instance "+
					"took it: ask again", f.Resource))
			default:
				return false
			}
			return true
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

// following is a request that somebody waits for.
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

// accepted notes whether an instance has taken it. One of before 2026-11-22 notes no UIDs: then the id
// decides.
func (f *following) accepted(mark watermark.Watermark) {
	f.taken = f.taken || f.is(mark.RequestUID) || mark.RequestUID == "" && mark.Request >= f.ID
}

// gone says that it was deleted before an instance took it, so that nobody will carry it out.
func (f *following) gone() bool { return !f.there && !f.taken }

// swept says whether the sweep was carried out, or a later one in its place.
func (f *following) swept(mark watermark.Watermark) bool {
	s := mark.Swept
	return s != nil && (f.is(s.RequestUID) || mark.RequestUID == "" && s.Request >= f.ID)
}

// replayed says whether the replay was carried out: the watermark that accepts it begins it.
func (f *following) replayed(mark watermark.Watermark) bool { return f.taken && mark.Replay == nil }

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
