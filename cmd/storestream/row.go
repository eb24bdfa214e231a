package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/row"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func rowCommand(env *environment) *cobra.Command {
	var mask bool
	cmd := &cobra.Command{
		Use:       "row RESOURCE ID",
		ValidArgs: schemas.Names(),
		Short:     "Compare one row of topic and service",
		Long: `Reads a row in the topic and in the service, reads its dead letter, and
compares the fields. If they differ, it says why, as far as it can tell. It
changes nothing and needs no running instance.

It reads the whole topic. It asks PostgreSQL for the row. REST has no request
for one row: it reads the day of creation, and then all rows if that does not
show the row, at store.max_requests_per_second at most.

It shows personal data. With --mask it shows "***" in place of each personal
value, and leaves out the row of a dead letter.

Exit status: 0 equal (both have the same row, or neither has one), 1 it could
not tell, 2 wrong usage, 3 different, or the row cannot be published.`,
		Example: "  storestream row users 123\n" +
			"  storestream row orders 4711 -o json | jq '{verdict, differs, notes}'",
	}
	cmd.Flags().BoolVar(&mask, "mask", false, "hide the values of personal fields")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(cmd, args, 1)
		if err != nil {
			return err
		}
		return env.inKafka(cmd, func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
			report, err := row.Look(cmd.Context(), row.Config{Settings: cfg, Schemas: set, Cluster: cluster,
				Resource: args[0], ID: ids[0], Mask: mask, Say: func(text string) { env.say(args[0], text) }})
			if err != nil {
				return err
			}
			return printRow(env, report, *asJSON)
		})
	}
	return cmd
}

// parseIDs reads the ids of RESOURCE ID..., each once.
func parseIDs(cmd *cobra.Command, args []string, most int) (ids []int64, err error) {
	if len(args) < 2 || len(args) > 1+most {
		return nil, usagef(cmd, "expected a resource and ids of rows (%d at most), such as %s users 123", most,
			cmd.CommandPath())
	}
	if err := resourceArgs(1, 1)(cmd, args[:1]); err != nil {
		return nil, err
	}
	for _, arg := range args[1:] {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, usagef(cmd, "%q is no id: expected a whole number", arg)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// printRow prints a report, in which row.Look has masked secrets. Its error is the exit status.
func printRow(env *environment, r *row.Report, asJSON bool) error {
	name := fmt.Sprintf("%s %d", r.Resource, r.ID)
	if asJSON {
		if err := writeJSON(env.rows, r); err != nil {
			return err
		}
	} else if err := printRowText(env, name, r); err != nil {
		return err
	}
	return verdictError(r.Verdict, joined(name, r.Error))
}

func printRowText(env *environment, name string, r *row.Report) error {
	// Where a pipe was closed early, that is the reader's choice.
	show := func(format string, args ...any) { _, _ = fmt.Fprintf(env.rows, format, args...) }
	show("%s\n\n", name)
	topic := r.Topic
	if p := r.InTopic.Place; p != nil {
		topic += ", " + placeText(*p)
	}
	show("topic        %s\n", joined(topic, string(r.InTopic.State), r.InTopic.Error))
	show("service      %s, asked %s\n", r.Source, joined(rowTime(r.InService.Asked), string(r.InService.State),
		r.InService.Field, r.InService.Error))
	if r.DeadLetter != nil {
		printDeadLetter(env, r.DeadLetter)
	}
	if len(r.Fields) > 0 {
		rows := [][]string{{"FIELD", "TOPIC", "SERVICE", ""}}
		for _, f := range r.Fields {
			differs := ""
			if f.Differs {
				differs = "differs"
			}
			rows = append(rows, []string{f.Name, cmp.Or(string(f.Topic), "-"), cmp.Or(string(f.Service), "-"),
				differs})
		}
		show("\n")
		if err := printTable(env.rows, rows); err != nil {
			return err
		}
	}
	verdict := verdicts[r.Verdict]
	if r.Verdict == verify.Different {
		verdict = joined(verdict, strings.Join(r.Differs, ", "))
	}
	show("\n%s.\n", verdict)
	for _, note := range r.Notes {
		show("%s\n", note)
	}
	return nil
}

// printDeadLetter prints a letter, in which row.NewDeadLetter has masked secrets.
func printDeadLetter(env *environment, l *row.DeadLetter) {
	_, _ = fmt.Fprintf(env.rows, "dead letter  %s\n", joined(placeText(l.Place), l.Field, l.Error))
	if l.Row != nil {
		_, _ = fmt.Fprintf(env.rows, "             %s\n", l.Row)
	}
}

// joined joins the parts that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// placeText is the place of a record in its topic.
func placeText(p row.Place) string {
	return fmt.Sprintf("partition %d, offset %d, time %s", p.Partition, p.Offset, rowTime(p.Time))
}

// rowTime is a time to the second.
func rowTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
