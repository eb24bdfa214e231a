package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// verifyGC is the percentage by which the heap may grow before it is collected.
const verifyGC = 25

func (a *app) verifyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "verify [RESOURCE...]",
		Short: "Compare topics with the service row by row, and say whether they are equal",
		Long: `Reads the topic and the service in full, all enabled resources or those that are named, and compares row by row. What differs is looked at
again, up to two times, each time after the running instance has polled; so rows under way do not count. It changes nothing, and needs no running
instance: without one, rows that changed since it stopped do differ.

  missing   the service has the row, the topic has not
  stale     both have it, with another content; or a record of it lies in a wrong partition too
  extra     the topic has it, the service has not (it was deleted, or never there)

Rows that cannot be published (dead letters) count apart and are no difference. PostgreSQL is read by id, REST by day of creation. Over REST
it sends at most store.max_requests_per_second, beside what the running instance sends: both share the rate that the service allows
the key. It takes 24 bytes of memory a row.

Exit status: 0 identical, 3 different, 1 could not tell (and none is known to differ), 2 wrong usage or configuration.

-o json prints one object: verdict (identical, different or unknown) and resources, for each: resource, source, topic, verdict, error (why
it is unknown), note, as_of (of its watermark; null: none), source_rows, topic_rows, dead_letters, in_flight (differed at first, and not
when looked at again), missing, stale, extra, missing_ids, stale_ids, extra_ids (the first 100 of each), untracked (of those that differ, how many were
too many to be looked at again), foreign (records whose key is no row's), seconds.`,
		Example: "  storestream verify --config storestream.yaml\n  storestream verify orders -o json | jq '.resources[] | {resource, verdict, stale_ids}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, set, err := a.load()
			if err != nil {
				return err
			}
			return a.withCluster(cmd, func(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) error {
				names := cfg.Enabled()
				if len(args) > 0 {
					if names, err = resources(cmd, args, false); err != nil {
						return err
					}
				}
				// What is held is one table without pointers, so a collection costs next to nothing however large it is; at the usual 100 percent
				// the garbage of reading would be let grow to its size first.
				defer debug.SetGCPercent(debug.SetGCPercent(verifyGC))
				v := &verification{app: a, cfg: cfg, set: set, cluster: cluster, bar: terminal.NewProgress(a.stderr)}
				defer v.bar.Clear()
				return v.run(ctx, names, output == "json")
			})
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// verification is one call of verify.
type verification struct {
	*app
	cfg     *config.Config
	set     *schemas.Set
	cluster *producer.Cluster
	bar     *terminal.Progress
	all     []*verified
}

// mostLooks is how often what differs is looked at again.
const mostLooks = 2

func (v *verification) run(ctx context.Context, names []string, asJSON bool) error {
	in := &instance{cfg: v.cfg, set: v.set, metrics: metrics.New(prometheus.NewRegistry()), log: zap.NewNop(), cluster: v.cluster}
	if err := in.openSources(); err != nil {
		return err
	}
	defer in.closeSources()
	for _, name := range names {
		one := newVerified(v, in, name)
		v.all = append(v.all, one)
		one.first(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if err := v.lookAgain(ctx); err != nil {
		return err
	}
	v.bar.Clear()
	for _, one := range v.all {
		one.conclude()
	}
	return v.report(asJSON)
}

// verifyEvery is how often the watermarks are read while verify waits for the running instance.
const verifyEvery = 300 * time.Millisecond

// lookAgain gives every resource with differences its looks, side by side: what takes time is to wait for the polls in between.
func (v *verification) lookAgain(ctx context.Context) error {
	if !v.open() {
		return nil
	}
	watch := producer.NewWatch(v.cluster)
	ticker := time.NewTicker(verifyEvery)
	defer ticker.Stop()
	var asked time.Time
	for {
		if time.Since(asked) >= ownersEvery {
			v.owners(ctx)
			asked = time.Now()
		}
		_ = watch.Look(ctx) // who cannot be asked is waited for as long as somebody who does not answer
		marks := watch.Watermarks()
		for _, one := range v.all {
			one.asOf = known(marks[one.Resource].AsOf)
			if one.open() && one.ready(time.Now()) {
				one.again(ctx)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !v.open() {
			return nil
		}
		v.bar.Say(v.waiting())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (v *verification) open() bool {
	for _, one := range v.all {
		if one.open() {
			return true
		}
	}
	return false
}

// waiting is what a person sees between two looks.
func (v *verification) waiting() string {
	n := 0
	for _, one := range v.all {
		if one.open() {
			n += one.differing()
		}
	}
	return terminal.Plural(n, "row") + " to look at again after the next poll"
}

// ownersEvery is how often verify asks the group who has what.
const ownersEvery = time.Second

// owners finds out who polls what: there is no use in waiting where nobody does. What was known stays when the group cannot be asked.
func (v *verification) owners(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	members, err := readMembers(ctx, v.cluster)
	for _, one := range v.all {
		switch {
		case errors.Is(err, producer.ErrSharing):
			one.polled.note("", true, time.Now())
		case err == nil:
			one.polled.note(ownersOf(members)[one.Resource], len(members) > 0, time.Now())
		}
	}
}

// differentError is exit status 3.
type differentError struct{ error }

// explain says what to do about why a resource could not be compared.
func (v *verification) explain(resource string, err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it", v.cluster.Topic(resource))
	}
	return err
}
