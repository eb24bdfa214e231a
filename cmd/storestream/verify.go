package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

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
		Short:     "Compare topics with the service row by row, and say whether they are equal",
		Long: `Reads the topic and the service in full, all enabled resources or those that are named, and
compares row by row. What differs is looked at again, up to two times, each time after the running
instance has polled; so rows under way do not count. Where that instance defers rows, it publishes them
when the resource's overlap is over, and verify waits as long (by default 2m over PostgreSQL, 5m over REST).
What it waits for, and until when at most, is on stderr, also without a terminal. It changes nothing, and
needs no running instance: without one, rows that changed since it stopped do differ.

  missing   the service has the row, the topic has not
  stale     both have it, with another content; or a record of it lies in a wrong partition too
  extra     the topic has it, the service has not (it was deleted, or never there)
  unknown   the service showed it in one reading and not in a later one: verify cannot tell

Rows that cannot be published (dead letters) count apart and are no difference. PostgreSQL is read by id,
REST by day of creation. Over REST it sends at most store.max_requests_per_second, beside what the running
instance sends: both share the rate that the service allows the key. It takes sweep.memory at most. A table
that needs more (about 24 MiB a million rows) is compared in parts, ranges of ids. Over REST each part reads
everything. If so many rows differ that a part ends for them, verify stops there.

Exit status: 0 identical, 3 different, 1 could not tell (and none is known to differ), 2 wrong usage or
configuration.

-o json prints one object: verdict (identical, different or unknown) and resources, for each: resource,
source, topic, verdict, error (why it is unknown), note, as_of (of its watermark; null: none), source_rows,
topic_rows, dead_letters, in_flight (differed at first, and not when looked at again), missing, stale, extra,
unknown, missing_ids, stale_ids, extra_ids, unknown_ids (the first 100 of each), foreign (records whose key is
no row's), seconds.`,
		Example: "  storestream verify\n" +
			"  storestream verify orders -o json | jq '.resources[] | {resource, verdict, stale_ids}'",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := chooseResources(cmd, args, len(args) == 0)
		if err != nil {
			return err
		}
		return env.inKafka(cmd, func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
			if len(args) == 0 {
				names = cfg.Enabled()
			}
			progress := terminal.NewProgress(env.stderr)
			defer progress.Clear()
			waits := waitTeller{stderr: env.stderr, progress: progress, said: map[string]string{}}
			var mu sync.Mutex // of both
			result, err := verify.Run(cmd.Context(), verify.Config{
				Settings: cfg, Schemas: set, Cluster: cluster, Resources: names,
				Reading: func(resource string, part, topicRows, sourceRows int) {
					mu.Lock()
					defer mu.Unlock()
					showReading(progress, resource, part, topicRows, sourceRows)
				},
				Waiting: func(resource string, rows int, what string, until time.Time) {
					mu.Lock()
					defer mu.Unlock()
					waits.tell(resource, rows, what, until, time.Now())
				},
			})
			if err != nil {
				return err
			}
			progress.Clear()
			return printResult(env, result, cfg.Sweep.Deletes, *asJSON)
		})
	}
	return cmd
}

// showReading shows how far the comparison of a resource is. The rows of the topic are the best guess of how
// many the service has.
func showReading(progress *terminal.Progress, resource string, part, topicRows, sourceRows int) {
	if part > 1 {
		resource += fmt.Sprintf(", part %d", part)
	}
	if sourceRows == 0 {
		progress.Show(resource+": reading the topic", topicRows, 0)
	} else {
		progress.Show(resource+": reading the service", sourceRows, max(topicRows, 1))
	}
}

// waitTeller says on stderr what verify waits for, each wait once: in a terminal, a pipe and a log alike.
type waitTeller struct {
	stderr   io.Writer
	progress *terminal.Progress
	said     map[string]string // what was printed last, by resource
}

// shortWait is the longest wait that is not printed.
const shortWait = 10 * time.Second

// tell prints a wait that is not a short one, and not the one that was printed last.
func (w *waitTeller) tell(resource string, rows int, what string, until, now time.Time) {
	if w.said[resource] != what && (until.IsZero() || until.Sub(now) > shortWait) {
		w.said[resource] = what
		w.progress.Clear()
		text := fmt.Sprintf("%s: %s different so far, looked at again after %s", resource,
			terminal.Plural(rows, "row"), what)
		if !until.IsZero() { // it ends within a second that is not over then
			text += ", by " + until.Add(time.Second).UTC().Format("15:04:05Z") + " at the latest"
		}
		_, _ = fmt.Fprintf(w.stderr, "%s\n", text)
	}
	w.progress.Say(resource + ": " + terminal.Plural(rows, "row") + " to look at again")
}

// printResult prints the result. Its error is the exit status.
func printResult(env *environment, result *verify.Result, deletes string, asJSON bool) error {
	if asJSON {
		if err := env.printJSON(result); err != nil {
			return err
		}
	} else {
		if err := reportTable(env, result).Print(env.stdout); err != nil {
			return err
		}
		printVerdict(env, result, deletes)
	}
	switch result.Verdict {
	case verify.Different:
		names := strings.Join(result.Names(verify.Different), ", ")
		return differentError{fmt.Errorf("different from the service: %s", names)}
	case verify.Unknown:
		return fmt.Errorf("could not tell: %s", strings.Join(result.Names(verify.Unknown), ", "))
	}
	return nil
}

func reportTable(env *environment, result *verify.Result) *terminal.Table {
	t := env.table("RESOURCE", "SERVICE", "TOPIC", "DEAD LETTERS", "IN FLIGHT", "MISSING", "STALE", "EXTRA",
		"FIRST IDS").Numbers(1, 2, 3, 4, 5, 6, 7)
	for _, r := range result.Resources {
		if r.Verdict == verify.Unknown {
			cells := append([]string{r.Resource}, slices.Repeat([]string{"-"}, 7)...)
			t.Row(append(cells, env.paint.As(terminal.Yellow, "could not tell"))...)
			continue
		}
		cells := []string{r.Resource}
		for _, n := range []int{r.SourceRows, r.TopicRows, r.DeadLetters, r.InFlight} {
			cells = append(cells, terminal.Count(n))
		}
		for _, n := range []int{r.Missing, r.Stale, r.Extra} {
			text := terminal.Count(n)
			if n > 0 {
				text = env.paint.As(terminal.Red, text)
			}
			cells = append(cells, text)
		}
		t.Row(append(cells, firstIDs(r))...)
	}
	return t
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

// remedy says what repairs the topics that differ. With deletes: report a sweep leaves extra rows alone. One
// that does not hold all that was published is filled from the start, without a sweep.
func remedy(result *verify.Result, deletes string) string {
	var swept, extra, anew []string
	for _, r := range result.Resources {
		if r.Verdict != verify.Different {
			continue
		}
		if r.Anew {
			anew = append(anew, r.Resource)
			continue
		}
		stays := r.Extra > 0 && deletes == config.Report
		if stays {
			extra = append(extra, r.Resource)
		}
		if !stays || r.Missing+r.Stale > 0 {
			swept = append(swept, r.Resource)
		}
	}
	var texts []string
	if len(swept) > 0 {
		texts = append(texts, fmt.Sprintf("`storestream sweep %s` asks the running instance to repair the topic.",
			strings.Join(swept, " ")))
	}
	if len(anew) > 0 {
		texts = append(texts, fmt.Sprintf("A running instance fills %s from the start within a minute "+
			"(`storestream run`).", strings.Join(anew, ", ")))
	}
	if len(extra) > 0 {
		texts = append(texts, fmt.Sprintf("Rows that are extra in %s stay, for sweep.deletes is report: "+
			"`storestream erase RESOURCE ID` deletes single ones, a sweep with sweep.deletes: tombstone all of them.",
			strings.Join(extra, ", ")))
	}
	return strings.Join(texts, " ")
}

// printVerdict prints the verdict, and notes beside the table. deletes is sweep.deletes.
func printVerdict(env *environment, result *verify.Result, deletes string) {
	switch result.Verdict {
	case verify.Identical:
		rows, inFlight, letters := 0, 0, 0
		for _, r := range result.Resources {
			rows, inFlight, letters = rows+r.SourceRows, inFlight+r.InFlight, letters+r.DeadLetters
		}
		env.print("\n%s %s of %s, row by row.\n", env.paint.As(terminal.Green, "Identical:"),
			terminal.Plural(rows, "row"), terminal.Plural(len(result.Resources), "resource"))
		if inFlight > 0 {
			env.print("In flight: %s changed while they were read, and were equal when looked at again; SERVICE and "+
				"TOPIC were counted before.\n", terminal.Plural(inFlight, "row"))
		}
		if letters > 0 {
			env.print("Not among them: %s that cannot be published, see the dead letters.\n",
				terminal.Plural(letters, "row"))
		}
	case verify.Different:
		env.print("\n%s %s. %s\n", env.paint.As(terminal.Red, "DIFFERENT:"),
			strings.Join(result.Names(verify.Different), ", "), remedy(result, deletes))
	case verify.Unknown:
		env.print("\n%s\n", env.paint.As(terminal.Yellow, "Could not tell."))
	}
	for _, r := range result.Resources {
		for _, text := range []string{r.Error, r.Note} {
			if text != "" {
				env.print("%s: %s\n", r.Resource, text)
			}
		}
	}
}
