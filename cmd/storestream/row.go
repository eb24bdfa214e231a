package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/row"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func rowCommand(env *environment) *cobra.Command {
	var mask bool
	cmd := &cobra.Command{
		Use:       "row RESOURCE ID",
		ValidArgs: schemas.Names(),
		Short:     "Say whether one row is right: what the topic holds of it, and what the service has",
		Long: `Reads what the topic holds of a row, what the service has now, and its dead letter if it has
one, and compares field by field. Where they differ it says why, as far as that can be told: a change that
is younger than the last poll, or than the overlap, may be under way. It changes nothing, and needs no
running instance.

The topic is read in full: a record of the row in a partition where its key does not belong is found
nowhere else. PostgreSQL is asked for the row. REST has nothing that finds one row, so the day on which it
was created is read, as the topic tells it; where it is not found so, everything is, at
store.max_requests_per_second at most.

It shows values as they are in the topic and as they would be published, personal data too; --mask shows
"***" for those, and leaves out the row of a dead letter.

Exit status: 0 equal (both have the same row, or neither has one), 3 different (a row that cannot be
published is), 1 could not tell, 2 wrong usage or configuration.

-o json prints one object: resource, id, source, topic, verdict (identical, different or unknown), error
(why it is unknown), in_topic (state: row, tombstone, none or unreadable; partition, offset, time, value,
error, records: how many the log holds of it; strays: partition, offset and time of each), in_service
(state: row, none, unpublishable or unknown; asked, value, field, error), differs (names of fields),
dead_letter (partition, offset, time, field, error, row; null: none), settled, as_of and trouble (of its
watermark), notes.`,
		Example: "  storestream row users 123\n" +
			"  storestream row orders 4711 -o json | jq '{verdict, differs, notes}'",
	}
	cmd.Flags().BoolVar(&mask, "mask", false, "do not show what is in personal fields")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := rowToLookAt(cmd, args)
		if err != nil {
			return err
		}
		return env.inKafka(cmd, func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
			progress := terminal.NewProgress(env.stderr)
			defer progress.Clear()
			report, err := row.Look(cmd.Context(), row.Config{Settings: cfg, Schemas: set, Cluster: cluster,
				Resource: args[0], ID: id, Mask: mask,
				Reading: func(what string, done, of int) { progress.Show(args[0]+": "+what, done, of) }})
			if err != nil {
				return err
			}
			progress.Clear()
			return printRow(env, report, *asJSON)
		})
	}
	return cmd
}

// rowToLookAt is the id that a command line names.
func rowToLookAt(cmd *cobra.Command, args []string) (int64, error) {
	if len(args) != 2 {
		return 0, usagef(cmd, "expected a resource and an id, such as %s users 123", cmd.CommandPath())
	}
	if err := checkResource(cmd, args[0]); err != nil {
		return 0, err
	}
	return parseID(cmd, args[1])
}

// parseID reads the id of a row.
func parseID(cmd *cobra.Command, arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return 0, usagef(cmd, "%q is no id: expected a whole number", arg)
	}
	return id, nil
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
	switch r.Verdict {
	case verify.Different:
		return differentError{fmt.Errorf("%s: the topic differs from the service", name)}
	case verify.Unknown:
		return fmt.Errorf("%s: could not tell: %s", name, r.Error)
	}
	return nil
}

func printRowText(env *environment, name string, r *row.Report) error {
	// Where a pipe was closed early, that is the reader's choice.
	show := func(format string, args ...any) { _, _ = fmt.Fprintf(env.rows, format, args...) }
	show("%s\n\n", env.paint.As(terminal.Bold, name))
	show("topic        %s\n", inTopicText(r))
	show("service      %s\n", inServiceText(r))
	if l := r.DeadLetter; l != nil {
		show("dead letter  %s, written %s (partition %d, offset %d)\n", why(l.Field, l.Error),
			rowTime(l.Time), l.Partition, l.Offset)
		if l.Row != nil {
			show("             %s\n", l.Row)
		}
	}
	if len(r.Fields) > 0 {
		t := env.table("FIELD", "TOPIC", "SERVICE", "")
		for _, f := range r.Fields {
			differs := ""
			if f.Differs {
				differs = env.paint.As(terminal.Red, "differs")
			}
			t.Row(f.Name, fieldText(f.Topic), fieldText(f.Service), differs)
		}
		show("\n")
		if err := t.Print(env.rows); err != nil {
			return err
		}
	}
	show("\n%s\n", rowVerdict(env.paint, r))
	for _, note := range r.Notes {
		show("%s\n", note)
	}
	return nil
}

func inTopicText(r *row.Report) string {
	t := r.InTopic
	if t.Partition == nil {
		return r.Topic + ": nothing"
	}
	where := fmt.Sprintf("%s, partition %d, offset %d, time %s", r.Topic, *t.Partition, *t.Offset,
		rowTime(*t.Time))
	if t.Records > 1 {
		where += fmt.Sprintf(" (the newest of %d in the log)", t.Records)
	}
	switch t.State {
	case row.Tombstone:
		where += ": a tombstone, the row is gone"
	case row.Unreadable:
		where += ": " + t.Error
	}
	return where
}

func inServiceText(r *row.Report) string {
	s := r.InService
	asked := fmt.Sprintf("%s, asked %s", r.Source, rowTime(s.Asked))
	switch s.State {
	case row.Absent:
		asked += ": no such row"
	case row.Unpublishable:
		asked += ": cannot be published, " + why(s.Field, s.Error)
	case row.Unknown:
		asked += ": could not be asked"
	}
	return asked
}

// why returns why a row cannot be published.
func why(field, text string) string {
	if field == "" {
		return text
	}
	return field + ": " + text
}

// fieldText returns a field of one side, or "-" if that side has no row.
func fieldText(text []byte) string {
	if text == nil {
		return "-"
	}
	return string(text)
}

func rowVerdict(paint terminal.Paint, r *row.Report) string {
	switch {
	case r.Verdict == verify.Unknown:
		return paint.As(terminal.Yellow, "Could not tell.")
	case r.Verdict == verify.Identical && r.InTopic.State == row.Present:
		return paint.As(terminal.Green, "Equal:") + " the topic holds the row as the service has it."
	case r.Verdict == verify.Identical && r.InService.State == row.Present:
		return paint.As(terminal.Green, "Right:") + " the topic need not hold it."
	case r.Verdict == verify.Identical:
		return paint.As(terminal.Green, "Equal:") + " neither the topic nor the service has such a row."
	}
	what := "the topic is not what the service has."
	switch {
	case len(r.Differs) > 0:
		what = strings.Join(r.Differs, ", ") + "."
	case r.InTopic.State == row.Present && r.InService.State == row.Absent:
		what = "the topic holds the row, the service does not show it."
	case r.InTopic.State != row.Present && r.InService.State == row.Present:
		what = "the service has the row, the topic does not."
	case r.InTopic.State == row.Present && r.InService.State == row.Present && len(r.InTopic.Strays) == 0:
		what = "no field, but its encoding: another program wrote it."
	}
	return paint.As(terminal.Red, "DIFFERENT:") + " " + what
}

// rowTime is a time to the second.
func rowTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
