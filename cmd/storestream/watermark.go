package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func watermarkCommand(env *environment) *cobra.Command {
	return group(&cobra.Command{Use: "watermark", Short: "Is everything up to date, and replays",
		Example: "  storestream watermark list"}, watermarkList(env), watermarkReset(env))
}

func watermarkList(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Say whether everything is up to date, and how far each resource is published",
		Long: `Reads the watermarks from Kafka and prints, for each resource: settled (every row with an
earlier updated_at is published, and none can appear there any more), as of (the topic holds what was
visible then), lag (now minus as of), rows published in all, what the last sweep found, the instance that
polls it, and the request that it works on or that waits for it. Below the table stands whether
everything is up to date, and if not, why not, what keeps settled where it is, where sweeps do
not come to an end, and which rows cannot be published. A restart begins the second look at a row anew, so
the time that is named for it moves then.

Not up to date is what fails, is blocked or polled by nobody, and what lags by more than three intervals
and ten seconds. Where its watermark is not written, what check finds in Kafka and the registry is named
too: an instance that is refused a takeover may not write why. Exit status: 0 all is up to date, 4
something is not.`,
		Example: "  storestream watermark list\n" +
			"  storestream watermark list -o json | jq '.[] | select(.lag_seconds > 60)'",
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, set, err := env.load()
		if err != nil {
			return err
		}
		return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
			resources, err := overview.Read(cmd.Context(), cfg, cluster)
			if err != nil {
				return err
			}
			addRefusals(cmd.Context(), cfg, set, cluster, resources)
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

// addRefusals adds the reason why a takeover would be refused to resources that maybe have no working owner.
// Their owner cannot write the reason into the watermark, because an instance that may not take over may not
// write.
func addRefusals(ctx context.Context, cfg *config.Config, set *schemas.Set, cluster *producer.Cluster,
	resources []overview.Resource) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	for i := range resources {
		r := &resources[i]
		if !r.Unattended(cfg.Kafka.Group) {
			continue
		}
		if _, err := producer.Rehearse(ctx, cluster, set.Get(r.Resource)); err != nil {
			if r.NotUpToDate != "" {
				r.NotUpToDate += "; "
			}
			r.NotUpToDate += "no instance with this configuration can take it over: " +
				strings.ReplaceAll(err.Error(), "\n", "; ")
		}
	}
}

// notUpToDate is an error that names the resources that are not up to date.
func notUpToDate(resources []overview.Resource) error {
	var late []string
	for _, r := range resources {
		if r.NotUpToDate != "" {
			late = append(late, r.Resource)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return lateError{errors.New("not up to date: " + strings.Join(late, ", "))}
}

// printOverview prints the table, and what follows from it.
func printOverview(env *environment, deadLetters string, resources []overview.Resource) error {
	t := env.table("RESOURCE", "SETTLED", "", "AS OF", "LAG", "PUBLISHED", "SWEPT", "OWNER", "REQUEST").
		Numbers(2, 4, 5)
	for _, r := range resources {
		lag, owner := "-", ownerText(r)
		if r.LagSeconds != nil {
			lag = terminal.Duration(r.Lag())
		}
		if r.NotUpToDate != "" {
			lag = env.paint.As(terminal.Red, lag)
		}
		if r.Owner == "" && !r.Between {
			owner = env.paint.As(terminal.Red, owner)
		}
		t.Row(r.Resource, pointerText(r.Settled), ago(r.Settled, r.Now), pointerText(r.AsOf), lag,
			terminal.Count(r.Rows), sweptText(r), owner, requestText(r))
	}
	if err := t.Print(env.stdout); err != nil {
		return err
	}
	env.print("\n%s\n", upToDateText(env.paint, resources))
	for _, r := range resources {
		if r.Trouble.SettlingDelayed() {
			env.print("%s\n", env.paint.As(terminal.Yellow, delayedText(r)))
		}
		if r.Swept != nil && r.Swept.Left != "" {
			env.print("%s\n", env.paint.As(terminal.Yellow, r.Resource+": the last sweep left some of it: "+
				r.Swept.Left))
		}
		if r.SweepLate != "" {
			env.print("%s\n", env.paint.As(terminal.Yellow, r.Resource+": "+r.SweepLate))
		}
		if r.Policies.Mixed() {
			env.print("%s\n", env.paint.As(terminal.Yellow, policiesText(r)))
		}
		for _, d := range r.DeadLetters {
			env.print("%s\n", env.paint.As(terminal.Yellow, deadLettersText(r.Resource, d, deadLetters)))
		}
	}
	return nil
}

// upToDateText says whether every enabled resource is up to date, and if not, why not.
func upToDateText(paint terminal.Paint, resources []overview.Resource) string {
	var reasons []string
	late := map[string][]string{} // resources by reason
	var largest overview.Resource
	for _, r := range resources {
		if !r.Enabled && r.NotUpToDate == "" {
			continue
		}
		if why := r.NotUpToDate; why != "" {
			if late[why] == nil {
				reasons = append(reasons, why)
			}
			late[why] = append(late[why], r.Resource)
		} else if largest.LagSeconds == nil || r.Lag() > largest.Lag() {
			largest = r
		}
	}
	switch {
	case len(reasons) > 0:
		text := paint.As(terminal.Red, "NOT up to date.")
		for _, why := range reasons {
			text += "\n  " + strings.Join(late[why], ", ") + ": " + why
		}
		return text + "\n`storestream check` tries what it needs; its log and status page say more."
	case largest.LagSeconds == nil:
		return "No resource is enabled here."
	}
	return fmt.Sprintf("%s the largest lag is %s (%s).", paint.As(terminal.Green, "Everything is up to date:"),
		terminal.Duration(largest.Lag()), largest.Resource)
}

// sweptText returns when the last sweep was and how many differences it found.
func sweptText(r overview.Resource) string {
	if r.LastSweep == nil {
		return "never"
	}
	text := ago(r.LastSweep, r.Now)
	if r.Swept == nil {
		return text
	}
	text += ": " + terminal.Plural(r.Swept.SourceRows, "row")
	if n := r.Swept.Missing + r.Swept.Stale + r.Swept.Extra; n > 0 {
		text += fmt.Sprintf(", %s differed", terminal.Count(n))
		if r.Swept.Left != "" {
			return text + ", not all repaired"
		}
		return text + ", repaired"
	}
	return text + ", equal"
}

// ownerText returns its owner, or its last owner if it has none now.
func ownerText(r overview.Resource) string {
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

// toldFor is how long a replay that is over is shown.
const toldFor = time.Hour

// requestText returns the request in hand, or those that wait.
func requestText(r overview.Resource) string {
	var parts []string
	if r.Replay != nil {
		parts = append(parts, "replaying from "+instantText(r.Replay.From))
	}
	if r.Sweep != nil {
		parts = append(parts, "sweeping")
	}
	if n := len(r.Erase); n > 0 {
		parts = append(parts, "erasing "+terminal.Plural(n, "row"))
	}
	for _, p := range r.Pending {
		what := "waits: " + string(p.Kind)
		if p.To != nil {
			what += " to " + instantText(*p.To)
		}
		parts = append(parts, what+" by "+p.By)
	}
	if done := r.Replayed; len(parts) == 0 && done != nil && r.Now.Sub(done.Ended) < toldFor {
		return fmt.Sprintf("replayed %s %s", terminal.Plural(done.Rows, "row"), ago(&done.Ended, r.Now))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

// delayedText says why settled stands still although rows go on.
func delayedText(r overview.Resource) string {
	return fmt.Sprintf("%s: published, but settled stands still, since %s (%s): %s", r.Resource,
		instantText(r.Trouble.Since), ago(&r.Trouble.Since, r.Now), r.Trouble.Why)
}

// policiesText says what ends the notice. A sweep alone cannot while it leaves rows from before start out.
func policiesText(r overview.Resource) string {
	remedy := "storestream sweep " + r.Resource
	if r.Swept != nil && r.Swept.Early > 0 {
		remedy = fmt.Sprintf("no sweep compares %s from before resources.%s.start: take start out, restart all "+
			"instances, then %s", terminal.Plural(r.Swept.Early, "row"), r.Resource, remedy)
	}
	return r.Resource + ": holds rows as other policies for fields let them through: " + remedy
}

// deadLettersText names rows that cannot be published, and the topic that has them.
func deadLettersText(resource string, d overview.DeadLetters, topic string) string {
	what := "the row"
	if d.Field != "" {
		what = "its " + d.Field
	}
	return fmt.Sprintf("%s: %s cannot be published, %s: %s (%s/%s in %s)", resource,
		terminal.Plural(d.Rows, "row"), what, d.Error, resource, strings.Join(d.IDs, ", "), topic)
}

func pointerText(i *schemas.Instant) string {
	if i == nil {
		return "-"
	}
	return instantText(*i)
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

// instantText returns i to the second, or "-" if unknown.
func instantText(i schemas.Instant) string {
	if i == schemas.MinInstant {
		return "-"
	}
	return i.Time().Format("2006-01-02T15:04:05Z")
}
