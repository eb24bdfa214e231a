package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
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
everything is up to date, and if not, why not and what to do, what delays settling, and
which rows cannot be published. A restart begins the second look at a row anew, so
the time that is named for it moves then.

Not up to date is a resource that fails, is blocked, stalled or without an owner, and one that lags by more
than three intervals and ten seconds. What check finds in Kafka and the registry is named too, because an
instance that is refused a takeover may not write why. Exit status: 0 all is up to date, 4 something is
not.`,
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
	resources []health.Resource) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	for i := range resources {
		r := &resources[i]
		if !r.Unattended(cfg.Kafka.Group) {
			continue
		}
		if _, err := producer.Rehearse(ctx, cluster, set.Get(r.Name)); err != nil {
			r.Refuse(strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
}

// arrow adds what to do to a text.
func arrow(text, remedy string) string {
	if remedy == "" {
		return text
	}
	return text + " -> " + remedy
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
	return lateError{errors.New("not up to date: " + strings.Join(late, ", "))}
}

// printOverview prints the table, and what follows from it.
func printOverview(env *environment, deadLetters string, resources []health.Resource) error {
	t := env.table("RESOURCE", "SETTLED", "", "AS OF", "LAG", "PUBLISHED", "SWEPT", "OWNER", "REQUEST").
		Numbers(2, 4, 5)
	for _, r := range resources {
		lag, owner := "-", ownerText(r)
		if r.LagSeconds != nil {
			lag = terminal.Duration(r.Lag())
		}
		if !r.UpToDate {
			lag = env.paint.As(terminal.Red, lag)
		}
		if r.State == health.Unowned {
			owner = env.paint.As(terminal.Red, owner)
		}
		t.Row(r.Name, pointerText(r.Settled), ago(r.Settled, r.Now), pointerText(r.AsOf), lag,
			terminal.Count(r.Rows), sweptText(r), owner, requestText(r))
	}
	if err := t.Print(env.stdout); err != nil {
		return err
	}
	env.print("\n%s\n", upToDateText(env.paint, resources))
	for _, r := range resources {
		var notes []string
		if r.State == health.SettlingDelayed {
			notes = append(notes, arrow(r.Text(), r.Remedy))
		}
		if r.Swept != nil && r.Swept.Left != "" {
			notes = append(notes, "the last sweep left some of it: "+r.Swept.Left)
		}
		notes = append(notes, policiesText(r))
		for _, d := range r.DeadLetters {
			notes = append(notes, deadLettersText(r.Name, d, deadLetters))
		}
		for _, note := range notes {
			if note != "" {
				env.print("%s\n", env.paint.As(terminal.Yellow, r.Name+": "+note))
			}
		}
	}
	return nil
}

// upToDateText says whether every enabled resource is up to date, and if not, why not.
func upToDateText(paint terminal.Paint, resources []health.Resource) string {
	var reasons []string
	late := map[string][]string{} // resources by reason
	var largest health.Resource
	for _, r := range resources {
		switch why := arrow(r.Text(), r.Remedy); {
		case !r.UpToDate:
			if late[why] == nil {
				reasons = append(reasons, why)
			}
			late[why] = append(late[why], r.Name)
		case r.Enabled && (largest.LagSeconds == nil || r.Lag() > largest.Lag()):
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
		terminal.Duration(largest.Lag()), largest.Name)
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
		text += fmt.Sprintf(", %s differed", terminal.Count(n))
		if r.Swept.Left != "" {
			return text + ", not all repaired"
		}
		return text + ", repaired"
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

// requestText returns the request in hand, or those that wait.
func requestText(r health.Resource) string {
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
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

// policiesText says that rows of other policies may remain, and what ends that, else "". A sweep alone does
// not while it leaves rows from before start out.
func policiesText(r health.Resource) string {
	if !r.Policies.Mixed() {
		return ""
	}
	remedy := "storestream sweep " + r.Name
	if r.Swept != nil && r.Swept.Early > 0 {
		remedy = fmt.Sprintf("no sweep compares %s from before resources.%s.start: take start out, restart all "+
			"instances, then %s", terminal.Plural(r.Swept.Early, "row"), r.Name, remedy)
	}
	return "holds rows as other policies for fields let them through: " + remedy
}

// deadLettersText names rows that cannot be published, and the topic that has them.
func deadLettersText(resource string, d health.DeadLetters, topic string) string {
	what := "the row"
	if d.Field != "" {
		what = "its " + d.Field
	}
	return fmt.Sprintf("%s cannot be published, %s: %s (%s/%s in %s)",
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
