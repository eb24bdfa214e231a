package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/row"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func deadLettersCommand(env *environment) *cobra.Command {
	return group(&cobra.Command{Use: "dead-letters", Short: "Show and retry rows that cannot be published",
		Example: "  storestream dead-letters list"}, deadLettersList(env), deadLettersShow(env),
		deadLettersRetry(env))
}

// deadLetters are those of one resource and reason, as `dead-letters list -o json` prints them.
type deadLetters struct {
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	watermark.DeadLetters
}

// listedIDs limits the rows that are named for each reason.
const listedIDs = 100

func deadLettersList(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:       "list [RESOURCE]",
		ValidArgs: schemas.Names(),
		Short:     "List dead letters by field and reason",
		Long: fmt.Sprintf(`Lists the dead letters by field and reason: how many rows, when the first and
the last of these letters were written, and the newest rows (with -o json %d
ids at most). A row without a usable id has 16 digits of a hash in place of its
id. It needs no running instance.`, listedIDs),
		Example: "  storestream dead-letters list\n" +
			"  storestream dead-letters list users -o json",
		Args: resourceArgs(0, 1),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return env.inKafka(cmd, func(_ *config.Config, _ *schemas.Set, cluster *producer.Cluster) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), connect.BrokerPatience)
			defer cancel()
			watch := producer.NewWatch(cluster)
			watch.MaxIDs = listedIDs
			if err := watch.Look(ctx); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return err
			}
			all := []deadLetters{}
			for _, name := range schemas.Names() {
				if len(args) > 0 && args[0] != name {
					continue
				}
				for _, letters := range watch.DeadLetters()[name] {
					all = append(all, deadLetters{name, letters})
				}
			}
			if *asJSON {
				return env.printJSON(all)
			}
			return printDeadLetters(env, all)
		})
	}
	return cmd
}

func printDeadLetters(env *environment, all []deadLetters) error {
	if len(all) == 0 {
		env.print("There are no dead letters.\n")
		return nil
	}
	const shown = 5
	rows := [][]string{{"RESOURCE", "FIELD", "ROWS", "FIRST", "LAST", "IDS", "REASON"}}
	for _, l := range all {
		ids := strings.Join(l.IDs[:min(shown, len(l.IDs))], " ")
		if l.Rows > shown {
			ids += " ..."
		}
		rows = append(rows, []string{l.Resource, cmp.Or(l.Field, "-"), strconv.Itoa(l.Rows), rowTime(l.First),
			rowTime(l.Latest), ids, l.Error})
	}
	return printTable(env.stdout, rows)
}

func deadLettersShow(env *environment) *cobra.Command {
	var mask bool
	cmd := &cobra.Command{
		Use:       "show RESOURCE ID",
		ValidArgs: schemas.Names(),
		Short:     "Print one dead letter",
		Long: `Prints one dead letter by its ID in dead-letters list: its place in the topic,
the field, the reason, and the row. Personal fields are masked unless
dead_letters.rows is full. With --mask it leaves out the row. "storestream row"
also asks the service.`,
		Example: "  storestream dead-letters show users 123",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef(cmd, "expected a resource and an id of `storestream dead-letters list`")
			}
			return resourceArgs(1, 1)(cmd, args[:1])
		},
	}
	cmd.Flags().BoolVar(&mask, "mask", false, "hide the row")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return env.inKafka(cmd, func(_ *config.Config, _ *schemas.Set, cluster *producer.Cluster) error {
			letter, err := producer.ReadDeadLetterAs(cmd.Context(), cluster, args[0], args[1])
			if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return err
			}
			var shown *row.DeadLetter
			if letter != nil {
				shown = row.NewDeadLetter(letter, env.hide, mask)
			}
			switch {
			case *asJSON:
				return writeJSON(env.rows, shown)
			case shown == nil:
				env.print("%s %s has no dead letter.\n", args[0], args[1])
			default:
				printDeadLetter(env, shown)
			}
			return nil
		})
	}
	return cmd
}

func deadLettersRetry(env *environment) *cobra.Command {
	o := order{Request: watermark.Request{Kind: watermark.Retries}, what: "a retry"}
	cmd := &cobra.Command{
		Use:       "retry RESOURCE [ID...]",
		ValidArgs: schemas.Names(),
		Short:     "Publish rows with dead letters that fit now",
		Long: fmt.Sprintf(`Asks the running instance to look up rows with dead letters in the service: %d
at most by id, or all of the resource. If a row can be published now, the
instance publishes it and takes out its letter. If a row is gone, it takes out
the letter. If one look proves nothing, it looks again an overlap later. Polls
go on. A sweep does the same for all rows.

With --wait it stays until that is done, and exits with 3 if some rows still
cannot be published.`,
			watermark.MostReplayed),
		Example: "  storestream dead-letters retry users --yes --wait\n" +
			"  storestream dead-letters retry users 123 456 --why corrected",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 1+watermark.MostReplayed {
				return usagef(cmd, "expected a resource, and %d ids at most", watermark.MostReplayed)
			}
			return resourceArgs(1, 1)(cmd, args[:1])
		},
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.rows(cmd, args[1:]); err != nil {
			return err
		}
		return o.send(env, cmd, args[:1], "Look these rows up?", nil)
	}
	return cmd
}
