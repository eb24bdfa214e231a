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
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func watermarkReset(env *environment) *cobra.Command {
	var to string
	var all, yes, stay bool
	cmd := &cobra.Command{
		Use:               "reset RESOURCE... --to TIME",
		ValidArgsFunction: completeResources,
		Short:             "Publish rows again from a time on (replay)",
		Long: `Asks the running instance to publish again every row with updated_at at or after TIME, each at
its newest state, without a restart. A consumer sees those rows a second time. TIME is RFC 3339, or a day
(its start in UTC). It counts the rows and asks. Where there is no terminal, and with -o json, which prints
the requests that it wrote, it needs --yes. With --wait it stays until every row is published,
and says when the request begins or ceases to wait (with -o json on stderr).`,
		Example: "  storestream watermark reset orders order_items --to 2026-11-20\n" +
			"  storestream watermark reset --all --to 2026-11-20T09:30:00Z --yes",
	}
	cmd.Flags().StringVar(&to, "to", "",
		"`TIME` from which rows are published again: 2026-11-20T09:30:00Z or 2026-11-20")
	cmd.Flags().BoolVar(&all, "all", false, "all enabled resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&stay, "wait", false, "stay until it is done")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := chooseResources(cmd, args, all)
		if err != nil {
			return err
		}
		at, err := resetTime(cmd, to, time.Now())
		if err != nil {
			return err
		}
		if err := env.mayAsk(cmd, yes, *asJSON); err != nil {
			return err
		}
		cfg, err := env.config()
		if err != nil {
			return err
		}
		if all {
			if names, err = enabled(cfg); err != nil {
				return err
			}
		}
		return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
			plan, err := planReset(cmd.Context(), env, cfg, cluster, names, at)
			if err != nil {
				return err
			}
			f := newFollower(env, cfg, cluster)
			if *asJSON { // what follows is for people
				f.say = func(format string, args ...any) { _, _ = fmt.Fprintf(env.stderr, format, args...) }
			}
			asked, err := reset(cmd.Context(), f, names, plan, !yes, *asJSON)
			if err != nil || !stay {
				return err
			}
			return followReplays(cmd.Context(), f, asked)
		})
	}
	return cmd
}

// resetTime reads TIME, which must not lie in the future, because there are no rows to publish again.
func resetTime(cmd *cobra.Command, text string, now time.Time) (schemas.Instant, error) {
	if text == "" {
		return 0, usagef(cmd, "--to is missing: expected a time, such as 2026-11-20T09:30:00Z or 2026-11-20")
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	if err != nil {
		return 0, usagef(cmd, "--to %q: expected RFC 3339 with a zone, such as 2026-11-20T09:30:00Z, or a day, "+
			"such as 2026-11-20", text)
	}
	if at.After(now) {
		return 0, usagef(cmd, "--to %s lies in the future: expected a time up to now (%s)",
			text, now.UTC().Format(time.RFC3339))
	}
	return max(schemas.InstantOf(at), schemas.MinInstant), nil
}

// replay is the plan of a reset for one resource.
type replay struct {
	Resource string           `json:"resource"`
	To       schemas.Instant  `json:"to"`
	Settled  *schemas.Instant `json:"settled"`       // now; null: nothing yet
	Records  *int64           `json:"about_records"` // the topic holds since then; null: unknown
	Rows     *int64           `json:"rows"`          // of these; null: they are too many to be counted
	Owner    string           `json:"owner"`         // the instance that will do it, "": the next one that comes
	Request  int64            `json:"request"`       // its id
	// RequestUID is its own id, even after the topic of requests was created again.
	RequestUID string `json:"request_uid"`

	now health.Resource
}

// mostCounted bounds the records that are read to count their rows, which takes some 40 bytes a row and some
// seconds a million.
const mostCounted = 1_000_000

// planReset looks up how much a reset will publish again.
func planReset(ctx context.Context, env *environment, cfg *config.Config, cluster *producer.Cluster,
	names []string, at schemas.Instant) ([]replay, error) {
	resources, err := overview.Read(ctx, cfg, cluster)
	if err != nil {
		return nil, err
	}
	progress := terminal.NewProgress(env.stderr)
	defer progress.Clear()
	var plan []replay
	for _, name := range names {
		r := replay{Resource: name, To: at}
		for _, now := range resources {
			if now.Name == name {
				r.now, r.Settled, r.Owner = now, now.Settled, now.Owner
			}
		}
		err := r.count(ctx, cluster, progress)
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing to publish again
			return nil, err
		}
		plan = append(plan, r)
	}
	return plan, nil
}

// count fills in how much the topic holds since the replay's time.
func (r *replay) count(ctx context.Context, cluster *producer.Cluster, progress *terminal.Progress) error {
	ask, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	records, err := producer.RecordsSince(ask, cluster, r.Resource, r.To)
	if err != nil {
		return err
	}
	r.Records = &records
	if records > mostCounted {
		return nil
	}
	rows, err := producer.RowsSince(ctx, cluster, r.Resource, r.To, func(read int) {
		progress.Show(r.Resource+": counting rows", read, int(records))
	})
	if err == nil {
		r.Rows = &rows
	}
	return err
}

// rowsText is how many rows are published again, as far as it is known.
func (r *replay) rowsText() string {
	switch {
	case r.Rows != nil:
		return terminal.Count(*r.Rows)
	case r.Records != nil:
		return "at most " + terminal.Count(*r.Records)
	}
	return "-"
}

// reset explains the plan to a person, who may still say no, and writes the requests.
func reset(ctx context.Context, f *follower, names []string, plan []replay, confirm, asJSON bool) (
	[]watermark.Request, error) {
	env, at := f.env, plan[0].To
	if !asJSON {
		if err := explainReset(env, at, plan); err != nil {
			return nil, err
		}
	}
	if confirm && !env.confirm("Publish these again?") {
		return nil, errNotConfirmed
	}
	asked, err := ask(ctx, f.cluster, names, watermark.Request{Kind: watermark.Reset, To: &at})
	if err != nil {
		return nil, err
	}
	for i := range asked {
		plan[i].Request, plan[i].RequestUID = asked[i].ID, asked[i].UID
	}
	if asJSON {
		return asked, env.printJSON(plan)
	}
	for _, r := range plan {
		env.print("%s: asked for a replay from %s\n", r.Resource, r.To)
	}
	f.sayWhoTakes(ctx, names, "; `storestream watermark list` shows how far it is")
	return asked, nil
}

// followReplays prints how many rows each replay published, as they are done.
func followReplays(ctx context.Context, f *follower, asked []watermark.Request) error {
	var refused []error
	err := f.follow(ctx, asked, (*following).replayed, func(r *following, mark watermark.Watermark) {
		if done := mark.Replayed; done != nil && r.is(done.RequestUID) {
			f.say("%s: published again: %s since %s, in %s\n", r.Resource, terminal.Plural(done.Rows, "row"),
				done.From, terminal.Duration(done.Ended.Sub(done.Began)))
			return
		}
		refused = append(refused, fmt.Errorf("%s: the instance has not replayed it: see its log", r.Resource))
	}, replayStep)
	return errors.Join(append(refused, err)...)
}

// replayStep says that a replay is in hand.
func replayStep(r *following, resources func(string) health.Resource) step {
	if !r.taken || resources(r.Resource).Mark.Replay == nil {
		return step{}
	}
	return step{"in hand", "the replay is in hand: it is over with the first complete pass that began after it"}
}

// explainReset says what will happen to each resource.
func explainReset(env *environment, at schemas.Instant, plan []replay) error {
	env.print("Every row with updated_at at or after %s is published again, at its newest state, and consumers "+
		"see it a second time:\n\n", at)
	t := env.table("RESOURCE", "SETTLED NOW", "GOES BACK BY", "ROWS SINCE", "OWNER").Numbers(3)
	for _, r := range plan {
		back := "nothing is settled yet"
		switch {
		case r.Settled == nil:
		case *r.Settled > at:
			back = backText(*r.Settled, at)
		default:
			back = "stays, it is earlier"
		}
		t.Row(r.Resource, pointerText(r.Settled), back, r.rowsText(), ownerText(r.now))
	}
	if err := t.Print(env.stdout); err != nil {
		return err
	}
	env.print("\nWhere no instance owns a resource the request waits for one, 7 days at least.\n")
	return nil
}

// backText is how far from lies after to. A Duration ends at 292 years, and TIME may be the year 1.
func backText(from, to schemas.Instant) string {
	if d := from.Sub(to); d < math.MaxInt64 {
		return terminal.Duration(d)
	}
	hours := (from.Millis() - to.Millis()) / time.Hour.Milliseconds()
	return fmt.Sprintf("%dd%dh", hours/24, hours%24)
}
