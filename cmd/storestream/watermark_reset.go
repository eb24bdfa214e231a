package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func watermarkReset(env *environment) *cobra.Command {
	var to string
	o := order{Request: watermark.Request{Kind: watermark.Reset}}
	cmd := &cobra.Command{
		Use:       "reset RESOURCE... --to TIME",
		ValidArgs: schemas.Names(),
		Args:      resourceArgs(0, math.MaxInt),
		Short:     "Read and publish everything again from a time on",
		Long: `Asks the running instance to read and publish again every row with updated_at
at or after TIME, in its newest state. A consumer sees those rows a second
time. TIME is RFC 3339, or a day (its start in UTC).

It gives the largest possible number of records, and asks before it begins.
Without a terminal it needs --yes. With --wait it stays until every row is
published.`,
		Example: "  storestream watermark reset orders order_items --to 2026-11-20\n" +
			"  storestream watermark reset --all --to 2026-11-20T09:30:00Z --yes",
	}
	cmd.Flags().StringVar(&to, "to", "",
		"rows updated at this `TIME` or later, such as 2026-11-20")
	cmd.Flags().StringVar(&o.Schema, "confirm-schema", "", "accept the table or view of another "+
		"PostgreSQL `SCHEMA`")
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := pastTime(cmd, "to", to, time.Now())
		if err != nil {
			return err
		}
		o.To, o.what = &at, "a replay from "+at.String()
		return o.send(env, cmd, unique(args), "Publish these again?", func(cluster *producer.Cluster,
			names []string) error {
			return printRowsSince(cmd.Context(), env, cluster, names, at, fmt.Sprintf("Every row with updated_at at "+
				"or after %s is published again, at its newest state, and consumers see it a second time:", at))
		})
	}
	return cmd
}

// pastTime reads the TIME of a flag, which must not lie in the future, because there are no rows to publish
// again.
func pastTime(cmd *cobra.Command, flag, text string, now time.Time) (schemas.Instant, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	if err != nil || at.After(now) {
		return 0, usagef(cmd, "--%s %q: expected a time that is over, in RFC 3339 with a zone, such as "+
			"2026-11-20T09:30:00Z, or a day, such as 2026-11-20", flag, text)
	}
	return max(schemas.InstantOf(at), schemas.MinInstant), nil
}

// printRowsSince prints at most how many rows of each resource were updated since a time.
func printRowsSince(ctx context.Context, env *environment, cluster *producer.Cluster, names []string,
	at schemas.Instant, text string) error {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	env.print("%s\n\n", text)
	rows := [][]string{{"RESOURCE", "ROWS, AT MOST"}}
	for _, name := range names {
		records, err := producer.RecordsSince(ctx, cluster, name, at)
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing to publish again
			return err
		}
		rows = append(rows, []string{name, terminal.Count(records)})
	}
	return printTable(env.stdout, rows)
}
