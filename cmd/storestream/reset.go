package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/watermark"
)

func (a *app) watermarkReset() *cobra.Command {
	var to string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "reset RESOURCE... --to TIME",
		Short: "Publish rows again from a time on (replay)",
		Long: `Asks the running instance to publish again every row with updated_at at or after TIME, each at its newest state, without a
restart. A consumer sees those rows a second time. TIME is RFC 3339, or a day (its start in UTC). It shows what it will do
and asks; where there is no terminal, --yes answers.`,
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
			if !yes && !a.terminal {
				return usagef(cmd, "nobody can be asked here: add --yes to go on without")
			}
			return a.withCluster(cmd, func(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) error {
				states, err := readStates(ctx, cfg, cluster)
				if err != nil {
					return err
				}
				a.explainReset(names, at, states)
				if !yes && !a.confirm("Publish these again?") {
					return fmt.Errorf("not confirmed: nothing was asked of the running instance")
				}
				ctx, cancel := context.WithTimeout(ctx, brokerPatience)
				defer cancel()
				return a.ask(ctx, cluster, names, at)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`TIME` from which rows are published again: 2026-11-20T09:30:00Z or 2026-11-20")
	cmd.Flags().BoolVar(&all, "all", false, "all resources")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
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

// explainReset says what will happen to each resource.
func (a *app) explainReset(names []string, at schemas.Instant, states []state) {
	byName := map[string]state{}
	for _, s := range states {
		byName[s.Resource] = s
	}
	a.print("Every row with updated_at at or after %s is published again, at its newest state:\n\n", at)
	t := newTable("RESOURCE", "SETTLED NOW", "GOES BACK BY", "ROWS SO FAR", "OWNER")
	for _, name := range names {
		s, known := byName[name]
		if !known || s.Settled == nil {
			t.row(name, "-", "nothing is settled yet", fmt.Sprint(s.Rows), s.owner())
			continue
		}
		back := "nothing settled is older"
		if *s.Settled > at {
			back = shortDuration(s.Settled.Sub(at))
		}
		t.row(name, instantText(*s.Settled), back, fmt.Sprint(s.Rows), s.owner())
	}
	_ = t.print(a.stdout) // a pipe that was closed early is the reader's choice
	a.print("\nWhere no instance owns a resource the request waits for one, 7 days at most.\n")
}

// confirm asks on the terminal; only a yes is one.
func (a *app) confirm(question string) bool {
	a.print("%s [y/N] ", question)
	line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end without an answer is no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

func (a *app) ask(ctx context.Context, cluster *producer.Cluster, names []string, at schemas.Instant) error {
	for i, name := range names {
		id, err := cluster.Ask(ctx, watermark.Request{Resource: name, Kind: watermark.Reset, To: &at, By: whoAmI(), At: schemas.InstantOf(time.Now())})
		if err != nil {
			asked := "none was asked for"
			if i > 0 {
				asked = "asked for already: " + strings.Join(names[:i], ", ")
			}
			return fmt.Errorf("asking for a replay of %s (%s): %w", name, asked, err)
		}
		a.print("%s: request %d: replay from %s\n", name, id, at)
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
