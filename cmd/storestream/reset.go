package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func (a *app) watermarkReset() *cobra.Command {
	var to, output string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "reset RESOURCE... --to TIME",
		Short: "Publish rows again from a time on (replay)",
		Long: `Asks the running instance to publish again every row with updated_at at or after TIME, each at its newest state, without a
restart. A consumer sees those rows a second time. TIME is RFC 3339, or a day (its start in UTC). It shows what it will publish
again and asks; where there is no terminal, --yes answers, and with -o json, which prints the requests that it wrote.`,
		Example: "  storestream watermark reset orders order_items --to 2026-11-20\n  storestream watermark reset --all --to 2026-11-20T09:30:00Z --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := resources(cmd, args, all)
			if err != nil {
				return err
			}
			at, err := resetTime(cmd, to, time.Now())
			if err != nil {
				return err
			}
			if !yes && (!a.terminal || output == "json") {
				return usagef(cmd, "nobody can be asked here: add --yes to go on without")
			}
			return a.withCluster(cmd, func(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) error {
				plan, err := planReset(ctx, cfg, cluster, names, at)
				if err != nil {
					return err
				}
				if output == "json" {
					return a.askAll(ctx, cluster, plan, func(plan []replay) error { return printJSON(a.stdout, plan) })
				}
				if err := a.explainReset(at, plan); err != nil {
					return err
				}
				if !yes && !a.confirm("Publish these again?") {
					return fmt.Errorf("not confirmed: nothing was asked of the running instance")
				}
				return a.askAll(ctx, cluster, plan, a.acknowledge)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`TIME` from which rows are published again: 2026-11-20T09:30:00Z or 2026-11-20")
	cmd.Flags().BoolVar(&all, "all", false, "all resources")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	outputFlag(cmd, &output)
	return cmd
}

// resetTime reads TIME, which must not lie in the future: from there nothing can be published again.
func resetTime(cmd *cobra.Command, text string, now time.Time) (schemas.Instant, error) {
	if text == "" {
		return 0, usagef(cmd, "--to is missing: expected a time, such as 2026-11-20T09:30:00Z or 2026-11-20")
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if at, err = time.Parse(time.DateOnly, text); err != nil {
			return 0, usagef(cmd, "--to %q: expected RFC 3339 with a zone, such as 2026-11-20T09:30:00Z, or a day, such as 2026-11-20", text)
		}
	}
	if at.After(now) {
		return 0, usagef(cmd, "--to %s lies in the future: expected a time up to now (%s)", text, now.UTC().Format(time.RFC3339))
	}
	return max(schemas.InstantOf(at), schemas.MinInstant), nil
}

// replay is what a reset means for one resource.
type replay struct {
	Resource string           `json:"resource"`
	To       schemas.Instant  `json:"to"`
	Settled  *schemas.Instant `json:"settled"`       // now; null: nothing yet
	Records  *int64           `json:"about_records"` // the topic holds since then; null: unknown
	Owner    string           `json:"owner"`         // who will carry it out, "": whoever comes next
	Request  int64            `json:"request"`       // its id
	state    state
}

// planReset looks up what a reset will publish again.
func planReset(ctx context.Context, cfg *config.Config, cluster *producer.Cluster, names []string, at schemas.Instant) ([]replay, error) {
	states, err := readStates(ctx, cfg, cluster)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	var plan []replay
	for _, name := range names {
		r := replay{Resource: name, To: at}
		for _, s := range states {
			if s.Resource == name {
				r.state, r.Settled, r.Owner = s, s.Settled, s.Owner
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

// explainReset says what will happen to each resource.
func (a *app) explainReset(at schemas.Instant, plan []replay) error {
	a.print("Every row with updated_at at or after %s is published again, at its newest state, and consumers see it a second time:\n\n", at)
	t := terminal.NewTable(a.paint, "RESOURCE", "SETTLED NOW", "GOES BACK BY", "RECORDS SINCE", "OWNER").Numbers(3)
	for _, r := range plan {
		settled, back, records := "-", "nothing is settled yet", "-"
		if r.Settled != nil {
			settled, back = instantText(*r.Settled), "nothing settled is older"
			if *r.Settled > at {
				back = terminal.Duration(r.Settled.Sub(at))
			}
		}
		if r.Records != nil {
			records = "about " + terminal.Count(*r.Records)
		}
		t.Row(r.Resource, settled, back, records, r.state.owner())
	}
	if err := t.Print(a.stdout); err != nil {
		return err
	}
	a.print("\nWhere no instance owns a resource the request waits for one, 7 days at most.\n")
	return nil
}

// confirm asks on the terminal; only a yes is one.
func (a *app) confirm(question string) bool {
	a.print("%s [y/N] ", question)
	line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end without an answer is no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// askAll writes the requests, and has them told once all are written.
func (a *app) askAll(ctx context.Context, cluster *producer.Cluster, plan []replay, tell func([]replay) error) error {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	for i := range plan {
		r := &plan[i]
		id, err := cluster.Requests().Ask(ctx, watermark.Request{Resource: r.Resource, Kind: watermark.Reset, To: &r.To, By: whoAmI(), At: schemas.InstantOf(time.Now())})
		if err != nil {
			asked := "none was asked for"
			if i > 0 {
				asked = fmt.Sprintf("asked for already: the first %d", i)
			}
			return fmt.Errorf("asking for a replay of %s (%s): %w", r.Resource, asked, err)
		}
		r.Request = id
	}
	return tell(plan)
}

func (a *app) acknowledge(plan []replay) error {
	for _, r := range plan {
		a.print("%s: request %d: replay from %s\n", r.Resource, r.Request, r.To)
	}
	a.print("The running instance takes it from here; `storestream watermark list` shows how far it is.\n")
	return nil
}

// whoAmI goes into the request, so that others know whom to ask: user@host.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
