package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func watermarkCommand(env *environment) *cobra.Command {
	return group(&cobra.Command{Use: "watermark", Short: "Show the progress of each resource, or reset it",
		Example: "  storestream watermark list"}, watermarkList(env), watermarkReset(env))
}

func watermarkList(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show whether everything is up to date",
		Long: `Prints for each resource

  SETTLED    every row with an earlier updated_at is published
  AS OF      the topic holds everything that was visible at this time
  LAG        the time since then
  PUBLISHED  rows published in all
  SWEPT      the last sweep and its result
  OWNER      the instance that polls it
  REQUEST    the request in hand, or one that waits

and below whether everything is up to date. It names each resource that is not,
with the reason and the remedy, and the rows that cannot be published.

A resource is not up to date if it fails, is blocked, paused, stalled or
without an owner, if it lags by more than three intervals and ten seconds, or
if more than 5 rows, or more than one in a thousand, cannot be published.

Exit status: 0 if everything is up to date, else 4.`,
		Example: "  storestream watermark list\n" +
			"  storestream watermark list -o json | jq '.[] | select(.lag_seconds > 60)'",
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return env.inKafka(cmd, func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
			resources, err := overview.Read(cmd.Context(), cfg, cluster)
			if err != nil {
				return err
			}
			overview.AddRefusals(cmd.Context(), cfg, set, cluster, resources)
			if *asJSON {
				err = env.printJSON(resources)
			} else {
				err = printOverview(env, cluster.DeadLetters(), resources)
			}
			return errors.Join(err, notUpToDate(resources))
		})
	}
	return cmd
}

// notUpToDate is an error that names the resources that are not up to date.
func notUpToDate(resources []health.Resource) error {
	var late []string
	for _, r := range resources {
		if !r.UpToDate {
			late = append(late, r.Name)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return exitError{exitLate, errors.New("not up to date: " + strings.Join(late, ", "))}
}

// incomplete is an error that names those of the resources that have too many dead letters.
func incomplete(ctx context.Context, cfg *config.Config, cluster *producer.Cluster, names []string) error {
	resources, err := overview.Read(ctx, cfg, cluster)
	var lacks []string
	for _, r := range resources {
		if why := r.Incomplete(); why != "" && slices.Contains(names, r.Name) {
			lacks = append(lacks, r.Name+": "+why)
		}
	}
	if len(lacks) == 0 {
		return err
	}
	return exitError{exitLate, errors.New("not up to date: " + strings.Join(lacks, "; ") +
		": `storestream watermark list` names the rows by field and reason")}
}

// printOverview prints the table, whether all is up to date, and what to know of each resource.
func printOverview(env *environment, deadLetters string, resources []health.Resource) error {
	rows := [][]string{{"RESOURCE", "SETTLED", "", "AS OF", "LAG", "PUBLISHED", "SWEPT", "OWNER", "REQUEST"}}
	var largest health.Resource // lag of those that are enabled
	for _, r := range resources {
		lag := "-"
		if r.LagSeconds != nil {
			lag = terminal.Duration(r.Lag())
		}
		rows = append(rows, []string{r.Name, pointerText(r.Settled), ago(r.Settled, r.Now), pointerText(r.AsOf),
			lag, terminal.Count(r.Rows), sweptText(r), ownerText(r), cmp.Or(requestText(r), "-")})
		if r.Enabled && r.LagSeconds != nil && (largest.LagSeconds == nil || r.Lag() > largest.Lag()) {
			largest = r
		}
	}
	if err := printTable(env.stdout, rows); err != nil {
		return err
	}
	switch {
	case notUpToDate(resources) != nil:
		env.print("\nNOT up to date.\n")
	case largest.LagSeconds == nil:
		env.print("\nNo resource is enabled here.\n")
	default:
		env.print("\nEverything is up to date: the largest lag is %s (%s).\n", terminal.Duration(largest.Lag()),
			largest.Name)
	}
	for _, r := range resources {
		for _, note := range notes(r, deadLetters) {
			env.print("%s: %s\n", r.Name, note)
		}
	}
	return nil
}

// stateText returns the reason for a resource's state, and the remedy if there is one.
func stateText(r health.Resource) string {
	if r.Remedy == "" {
		return r.Text()
	}
	return r.Text() + " -> " + r.Remedy
}

// notes returns lines about a resource for people: the reason for its state, the defects of its topic, and
// the remedies.
func notes(r health.Resource, deadLetters string) (notes []string) {
	if text := stateText(r); text != "" {
		notes = append(notes, text)
	}
	if r.Swept != nil && r.Swept.Left != "" {
		notes = append(notes, "the last sweep left some of it: "+r.Swept.Left)
	}
	if r.Sweep != nil && r.Sweep.Failure != "" {
		notes = append(notes, "the sweep has not ended: "+r.Sweep.Failure)
	}
	if len(r.Parts) > 0 && r.Parts[0].Failure != "" {
		notes = append(notes, "the replay has not ended: "+r.Parts[0].Failure)
	}
	if r.Policies.Mixed() {
		remedy := "storestream sweep " + r.Name
		if r.Swept != nil && r.Swept.Early > 0 { // a sweep leaves these as they are
			remedy = fmt.Sprintf("no sweep compares %s from before resources.%s.start: take start out, restart all "+
				"instances, then %s", terminal.Plural(r.Swept.Early, "row"), r.Name, remedy)
		}
		notes = append(notes, "holds rows as other policies for fields let them through: "+remedy)
	}
	for _, d := range r.DeadLetters {
		what := "the row"
		if d.Field != "" {
			what = "its " + d.Field
		}
		notes = append(notes, fmt.Sprintf("%s cannot be published, %s: %s (%s/%s in %s)",
			terminal.Plural(d.Rows, "row"), what, d.Error, r.Name, strings.Join(d.IDs, ", "), deadLetters))
	}
	return notes
}

// sweptText returns when the last sweep was and how many differences it found.
func sweptText(r health.Resource) string {
	if r.LastSweep == nil {
		return "never"
	}
	text := ago(r.LastSweep, r.Now)
	if r.Swept == nil {
		return text
	}
	text += ": " + terminal.Plural(r.Swept.SourceRows, "row")
	if n := r.Swept.Missing + r.Swept.Stale + r.Swept.Extra; n > 0 {
		return text + fmt.Sprintf(", %s differed", terminal.Count(n))
	}
	if r.Swept.Left != "" {
		return text + ", see below"
	}
	return text + ", equal"
}

// ownerText returns its owner, or its last owner if it has none now.
func ownerText(r health.Resource) string {
	switch {
	case r.Owner != "":
		return r.Owner
	case r.Between:
		return fmt.Sprintf("between two (last %s)", r.Instance)
	case r.Written == nil:
		return "none"
	}
	return fmt.Sprintf("none (last %s, %s)", r.Instance, ago(r.Written, r.Now))
}

// requestText returns the requests in hand and those that wait, "" if there are none.
func requestText(r health.Resource) string {
	var parts []string
	if r.Replay != nil {
		parts = append(parts, "replaying from "+rowTime(r.Replay.From.Time()))
	}
	if len(r.Parts) > 0 {
		parts = append(parts, partText(&r.Parts[0]))
	}
	if n := len(r.Parts) - 1; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more of these wait", n))
	}
	switch {
	case r.Sweep != nil && r.Sweep.Tried == nil && r.Sweep.Failure != "":
		parts = append(parts, "a sweep is tried again")
	case r.Sweep != nil && r.Sweep.Tried == nil && r.Sweep.From == nil:
		parts = append(parts, "a sweep is due")
	case r.Sweep != nil:
		parts = append(parts, "sweeping")
	}
	if n := len(r.Erase); n > 0 {
		parts = append(parts, "erasing "+terminal.Plural(n, "row"))
	}
	for _, p := range r.Pending {
		parts = append(parts, "waits: "+whatText(&p)+" by "+p.By)
	}
	return strings.Join(parts, "; ")
}

// pointerText returns an instant to the second, or "-" if it is not known.
func pointerText(i *schemas.Instant) string {
	if i == nil {
		return "-"
	}
	return rowTime(i.Time())
}

// ago returns how long before now an instant was, in words, or "-" if unknown.
func ago(i *schemas.Instant, now schemas.Instant) string {
	switch {
	case i == nil:
		return "-"
	case *i > now:
		return "in " + terminal.Duration(i.Sub(now))
	}
	return terminal.Duration(now.Sub(*i)) + " ago"
}
