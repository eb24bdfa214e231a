package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func replayCommand(env *environment) *cobra.Command {
	var from, to string
	var ids []string
	o := order{Request: watermark.Request{Kind: watermark.Replays}}
	cmd := &cobra.Command{
		Use:                   "replay RESOURCE... (--from TIME [--to TIME] | --ids ID,...)",
		DisableFlagsInUseLine: true,
		ValidArgs:             schemas.Names(),
		Args:                  resourceArgs(0, math.MaxInt),
		Short:                 "Publish some rows again",
		Long: fmt.Sprintf(`Asks the running instance to publish rows again: those with updated_at in a
range, or %d at most by id. A consumer sees each of them once more. Polls go
on, and settled does not move. TIME is RFC 3339, or a day (its start in UTC).

A replay repairs nothing. If topic and service have different versions of a
row, it leaves that row to polls and sweeps. A row that changes meanwhile is
published once. After a crash the next owner continues the replay. Several
replays of a resource run one after the other.

It asks before it begins. Without a terminal it needs --yes. With --wait it
stays until the rows are published, and exits with 3 if some were left.

To read everything from a time on again, use watermark reset.`, watermark.MostReplayed),
		Example: "  storestream replay orders --from 2026-11-20 --to 2026-11-21\n" +
			"  storestream replay orders --ids 1,2,3 --yes --wait",
	}
	cmd.Flags().StringVar(&from, "from", "", "rows updated at this `TIME` or later")
	cmd.Flags().StringVar(&to, "to", "", "rows updated before this `TIME` (default: now)")
	cmd.Flags().StringSliceVar(&ids, "ids", nil, "the rows `ID,...`")
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := o.rows(cmd, ids)
		if err == nil {
			err = o.part(cmd, from, to, args)
		}
		if err != nil {
			return err
		}
		return o.send(env, cmd, unique(args), "Publish these again?", func(cluster *producer.Cluster,
			names []string) error {
			return o.explainPart(cmd.Context(), env, cluster, names)
		})
	}
	cmd.AddCommand(requestsList(env, "replay list", "List replays and retries",
		watermark.Replays, watermark.Retries, watermark.Reset), replayCancel(env))
	return cmd
}

// rows reads the ids of rows.
func (o *order) rows(cmd *cobra.Command, ids []string) error {
	for _, text := range ids {
		id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return usagef(cmd, "id %q: expected a whole number", text)
		}
		o.Rows = append(o.Rows, id)
	}
	slices.Sort(o.Rows)
	o.Rows = slices.Compact(o.Rows)
	return nil
}

// part reads which rows are to be published again.
func (o *order) part(cmd *cobra.Command, from, to string, resources []string) error {
	if (from == "") == (len(o.Rows) == 0) || to != "" && from == "" {
		return usagef(cmd, "expected --from, or --from and --to, or --ids")
	}
	if len(o.Rows) > 0 {
		if len(unique(resources)) != 1 || o.all || len(o.Rows) > watermark.MostReplayed {
			return usagef(cmd, "--ids: expected one resource without --all, and %d ids at most",
				watermark.MostReplayed)
		}
		o.what = "a replay of " + terminal.Plural(len(o.Rows), "row")
		return nil
	}
	begin, err := pastTime(cmd, "from", from, time.Now())
	if err != nil {
		return err
	}
	o.From, o.what = &begin, "a replay from "+begin.String()
	if to == "" {
		return nil
	}
	end, err := pastTime(cmd, "to", to, time.Now())
	if err == nil && end <= begin {
		err = usagef(cmd, "--to %s: expected a time after --from", to)
	}
	o.To, o.what = &end, o.what+" to "+end.String()
	return err
}

// explainPart says how much of each resource is published again. It returns an error if the owner would
// refuse the replay.
func (o *order) explainPart(ctx context.Context, env *environment, cluster *producer.Cluster,
	names []string) error {
	marks, err := readMarks(ctx, cluster)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n := len(marks[name].Parts); n >= watermark.MostParts {
			return fmt.Errorf("%s: %d replays of parts wait already, as many as may: wait for the end of one, or end "+
				"all by `storestream replay cancel %s`", name, n, name)
		}
	}
	if o.From == nil {
		env.print("Published again as the topic has them, so that consumers see them once more: %s.\n",
			terminal.Plural(len(o.Rows), "row"))
		return nil
	}
	return printRowsSince(ctx, env, cluster, names, *o.From, "These rows are published again, as the topic has "+
		"them, and consumers see them once more. Those after --to are counted, and stay out:")
}

// readMarks reads the watermarks of all resources, for a person who waits.
func readMarks(ctx context.Context, cluster *producer.Cluster) (map[string]watermark.Watermark, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	marks, _, err := producer.ReadWatermarks(ctx, cluster)
	return marks, err
}

func replayCancel(env *environment) *cobra.Command {
	o := order{Request: watermark.Request{Kind: watermark.Cancels}, what: "an end of its replays"}
	cmd := &cobra.Command{
		Use:       "cancel RESOURCE...",
		ValidArgs: schemas.Names(),
		Args:      resourceArgs(0, math.MaxInt),
		Short:     "End all replays and retries",
		Long: `Asks the running instance to end all replays and retries of the resource, also
those that wait and the replay of a watermark reset. It lists them before it
asks. It publishes no further row again. After a reset, settled returns to its
earlier time. A reset from before the end of the first load cannot be
cancelled.`,
		Example: "  storestream replay cancel orders --yes",
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.send(env, cmd, unique(args), "End these?", func(cluster *producer.Cluster, names []string) error {
			return explainCancel(cmd.Context(), env, cluster, names)
		})
	}
	return cmd
}

// explainCancel prints the replays that a cancel ends.
func explainCancel(ctx context.Context, env *environment, cluster *producer.Cluster, names []string) error {
	marks, err := readMarks(ctx, cluster)
	if err != nil {
		return err
	}
	for _, name := range names {
		mark := marks[name]
		text := requestText(health.Resource{Replay: mark.Replay, Parts: mark.Parts})
		env.print("%s: %s\n", name, cmp.Or(text, "there is no replay now"))
	}
	return nil
}

// resultText returns the result of a request in a line.
func resultText(r *watermark.Result) string {
	if r.Left != "" && r.Began == r.Ended { // it was refused
		return "not done: " + r.Left
	}
	text, publishes := map[watermark.Kind]string{watermark.Reset: "published again: ",
		watermark.Replays: "published again: ", watermark.Retries: "published: "}[r.Kind]
	if !publishes {
		return "done"
	}
	text += terminal.Plural(r.Rows, "row")
	if r.From > schemas.MinInstant {
		text += " since " + r.From.String()
	}
	text += ", in " + terminal.Duration(r.Ended.Sub(r.Began))
	if r.Left != "" {
		text += ". Left: " + r.Left
	}
	return text
}

// ended prints the result of a request that is over. A reset may have ended with a later one.
func (r *following) ended(mark *watermark.Watermark) error {
	for i := len(mark.Results) - 1; i >= 0; i-- {
		result := &mark.Results[i]
		if result.RequestUID != r.UID && (r.Kind != watermark.Reset || !r.is(result.RequestUID)) {
			continue
		}
		r.env.print("%s: %s\n", r.Resource, resultText(result))
		if result.Left != "" {
			return exitError{exitDifferent, errors.New(r.Resource + ": not all was done")}
		}
		return nil
	}
	return errors.New(r.Resource + ": its result is no longer known: see the instance's log")
}
