package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func watermarkReset(env *environment) *cobra.Command {
	var to string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "reset RESOURCE... --to TIME",
		Short: "Publish rows again from a time on (replay)",
		Long: `Asks the running instance to publish again every row with updated_at at or after TIME, each at
its newest state, without a restart. A consumer sees those rows a second time. TIME is RFC 3339, or a day
(its start in UTC). It shows what it will publish again and asks. Where there is no terminal, and with -o
json, which prints the requests that it wrote, --yes answers.`,
		Example: "  storestream watermark reset orders order_items --to 2026-11-20\n" +
			"  storestream watermark reset --all --to 2026-11-20T09:30:00Z --yes",
	}
	cmd.Flags().StringVar(&to, "to", "",
		"`TIME` from which rows are published again: 2026-11-20T09:30:00Z or 2026-11-20")
	cmd.Flags().BoolVar(&all, "all", false, "all resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
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
		if !yes && (!env.terminal || *asJSON) {
			return usagef(cmd, "without a terminal to ask on, and with -o json, it does nothing unasked: add --yes")
		}
		cfg, err := env.config()
		if err != nil {
			return err
		}
		return env.withCluster(cmd.Context(), cfg, func(cluster *producer.Cluster) error {
			plan, err := planReset(cmd.Context(), cfg, cluster, names, at)
			if err != nil {
				return err
			}
			return reset(cmd.Context(), env, cluster, names, plan, !yes, *asJSON)
		})
	}
	return cmd
}

// resetTime reads TIME, which must not lie in the future: from there nothing can be published again.
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

// replay is what a reset means for one resource.
type replay struct {
	Resource string           `json:"resource"`
	To       schemas.Instant  `json:"to"`
	Settled  *schemas.Instant `json:"settled"`       // now; null: nothing yet
	Records  *int64           `json:"about_records"` // the topic holds since then; null: unknown
	Owner    string           `json:"owner"`         // the instance that will do it, "": the next one that comes
	Request  int64            `json:"request"`       // its id
	// RequestUID is its own id, which stays its own where the topic of requests is made anew.
	RequestUID string `json:"request_uid"`

	now overview.Resource
}

// planReset looks up what a reset will publish again.
func planReset(ctx context.Context, cfg *config.Config, cluster *producer.Cluster, names []string,
	at schemas.Instant) ([]replay, error) {
	resources, err := overview.Read(ctx, cfg, cluster)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	var plan []replay
	for _, name := range names {
		r := replay{Resource: name, To: at}
		for _, now := range resources {
			if now.Resource == name {
				r.now, r.Settled, r.Owner = now, now.Settled, now.Owner
			}
		}
		n, err := producer.RecordsSince(ctx, cluster, name, at)
		switch {
		case err == nil:
			r.Records = &n
		case !errors.Is(err, kerr.UnknownTopicOrPartition):
			return nil, err
		}
		plan = append(plan, r)
	}
	return plan, nil
}

// reset explains the plan to a person, who may still say no, and writes the requests.
func reset(ctx context.Context, env *environment, cluster *producer.Cluster, names []string, plan []replay,
	confirm, asJSON bool) error {
	at := plan[0].To
	if !asJSON {
		if err := explainReset(env, at, plan); err != nil {
			return err
		}
	}
	if confirm && !env.confirm("Publish these again?") {
		return errNotConfirmed
	}
	asked, err := ask(ctx, cluster, names, watermark.Request{Kind: watermark.Reset, To: &at})
	if err != nil {
		return err
	}
	for i := range asked {
		plan[i].Request, plan[i].RequestUID = asked[i].ID, asked[i].UID
	}
	if asJSON {
		return env.printJSON(plan)
	}
	for _, r := range plan {
		env.print("%s: request %d: replay from %s\n", r.Resource, r.Request, r.To)
	}
	env.print("The running instance takes it from here; `storestream watermark list` shows how far it is.\n")
	return nil
}

// explainReset says what will happen to each resource.
func explainReset(env *environment, at schemas.Instant, plan []replay) error {
	env.print("Every row with updated_at at or after %s is published again, at its newest state, and consumers "+
		"see it a second time:\n\n", at)
	t := env.table("RESOURCE", "SETTLED NOW", "GOES BACK BY", "RECORDS SINCE", "OWNER").Numbers(3)
	for _, r := range plan {
		back, records := "nothing is settled yet", "-"
		switch {
		case r.Settled == nil:
		case *r.Settled > at:
			back = terminal.Duration(r.Settled.Sub(at))
		default:
			back = "nothing settled is older"
		}
		if r.Records != nil {
			records = "about " + terminal.Count(*r.Records)
		}
		t.Row(r.Resource, pointerText(r.Settled), back, records, ownerText(r.now))
	}
	if err := t.Print(env.stdout); err != nil {
		return err
	}
	env.print("\nWhere no instance owns a resource the request waits for one, 7 days at most.\n")
	return nil
}
