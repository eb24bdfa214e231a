package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func verifyCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:       "verify [RESOURCE...]",
		ValidArgs: schemas.Names(),
		Short:     "Compare topics with the service, row by row",
		Long: `Reads the topic and the service in full, all enabled resources or those that are named, and
compares row by row. What differs is looked at again, up to two times, each time after the running
instance has polled; so rows under way do not count. Where that instance defers rows, it publishes them
when the resource's overlap is over, and verify waits as long (by default 2m over PostgreSQL, 5m over REST).
What it waits for, and until when at most, is on stderr, also without a terminal. It changes nothing, and
needs no running instance: without one, rows that changed since it stopped do differ.

  missing   the service has the row, the topic has not
  stale     both have it, with another content; or a record of it lies in a wrong partition too
  extra     the topic has it, the service has not (it was deleted, or never there)
  unknown   the service showed it in one reading and not in another: verify cannot tell

Rows that cannot be published (dead letters) count apart. They are no difference unless they are more than 5
of a resource, or more than one in a thousand of its rows. Over REST it shares the rate that the service
allows the key with the running instance. It takes sweep.memory at most. What that does
not hold goes to a file of sweep.scratch at most in $TMPDIR or /var/tmp.

Exit status: 0 identical, 3 different or too many dead letters, 1 could not tell (and none is known to
differ), 2 wrong usage or configuration.`,
		Args: resourceArgs(0, math.MaxInt),
		Example: "  storestream verify\n" +
			"  storestream verify orders -o json | jq '.resources[] | {resource, verdict, stale_ids}'",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return env.inKafka(cmd, func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
			names := unique(args)
			if len(names) == 0 {
				names = cfg.Enabled()
			}
			result, err := verify.Run(cmd.Context(), verify.Config{Settings: cfg, Schemas: set, Cluster: cluster,
				Resources: names, Say: env.say})
			if err != nil {
				return err
			}
			return printResult(env, result, *asJSON)
		})
	}
	return cmd
}

// printResult prints the result. Its error is the exit status.
func printResult(env *environment, result *verify.Result, asJSON bool) error {
	if asJSON {
		if err := env.printJSON(result); err != nil {
			return err
		}
	} else {
		if err := printTable(env.stdout, reportTable(result)); err != nil {
			return err
		}
		printVerdict(env, result)
	}
	return verdictError(result.Verdict, strings.Join(result.Names(result.Verdict), ", "))
}

// verdictError returns the error of a comparison, for its exit status. about names the resources or the row.
func verdictError(v verify.Verdict, about string) error {
	switch v {
	case verify.Different:
		return exitError{exitDifferent, errors.New("different from the service: " + about)}
	case verify.Incomplete:
		return exitError{exitDifferent, errors.New("too many rows have dead letters: " + about)}
	case verify.Unknown:
		return errors.New("could not tell: " + about)
	}
	return nil
}

// verdicts are the verdicts in words.
var verdicts = map[verify.Verdict]string{verify.Identical: "Identical", verify.Different: "DIFFERENT",
	verify.Incomplete: "Identical", verify.Unknown: "Could not tell"}

func reportTable(result *verify.Result) [][]string {
	rows := [][]string{{"RESOURCE", "SERVICE", "TOPIC", "DEAD LETTERS", "IN FLIGHT", "MISSING", "STALE", "EXTRA",
		"FIRST IDS"}}
	for _, r := range result.Resources {
		if r.Verdict == verify.Unknown {
			cells := append([]string{r.Resource}, slices.Repeat([]string{"-"}, 7)...)
			rows = append(rows, append(cells, "could not tell"))
			continue
		}
		cells := []string{r.Resource}
		for _, n := range []int{r.SourceRows, r.TopicRows, r.DeadLetters, r.InFlight, r.Missing, r.Stale, r.Extra} {
			cells = append(cells, terminal.Count(n))
		}
		rows = append(rows, append(cells, firstIDs(r)))
	}
	return rows
}

// fewIDs is how many ids of each kind the table shows.
const fewIDs = 5

func firstIDs(r *verify.Report) string {
	var parts []string
	for _, kind := range reconcile.Kinds() {
		ids := r.IDs(kind)
		if len(ids) == 0 {
			continue
		}
		var text []string
		for _, id := range ids[:min(fewIDs, len(ids))] {
			text = append(text, fmt.Sprint(id))
		}
		if len(ids) > fewIDs {
			text = append(text, "...")
		}
		parts = append(parts, string(kind)+" "+strings.Join(text, ", "))
	}
	return strings.Join(parts, "; ")
}

// printVerdict prints the verdict, and the notes of each resource.
func printVerdict(env *environment, result *verify.Result) {
	about, verdict := strings.Join(result.Names(result.Verdict), ", "), verdicts[result.Verdict]
	if result.Verdict == verify.Identical || result.Verdict == verify.Incomplete {
		rows, letters := 0, 0
		for _, r := range result.Resources {
			rows += r.SourceRows
			letters += r.DeadLetters
		}
		if letters > 0 {
			verdict += " but for " + terminal.Plural(letters, "row") + " with dead letters"
		}
		about = terminal.Plural(rows, "row") + " of " + terminal.Plural(len(result.Resources), "resource") +
			", row by row"
	}
	env.print("\n%s: %s.\n", verdict, about)
	for _, r := range result.Resources {
		if r.Error != "" {
			env.print("%s: %s\n", r.Resource, r.Error)
		}
		for _, note := range r.Notes {
			env.print("%s: %s\n", r.Resource, note)
		}
	}
}
