package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/instance"
	"github.com/storestream/storestream/cmd/storestream/internal/preflight"
	"github.com/storestream/storestream/internal/terminal"
)

func checkCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Test everything that run needs",
		Long: `Tries the first steps of run, and changes nothing. You may run it beside a
running instance. For each resource it rehearses the takeover: topics, rights,
schemas, other deployments. Then it reads the source as a pass, a sweep and a
lookup of one row do, up to 12,000 rows each. By default that takes four
minutes at most.

It prints the errors that run would meet, the state of each resource, and the
protection of each connection, in one line each:

  ok    as it should be
  note  good to know
  warn  it works, at a cost: which, and what to do
  FAIL  run will fail: why, and what to do

Exit status: 0 if no line says FAIL, else 1.`,
		Example: "  storestream check\n" +
			"  storestream check -o json | jq '.[] | select(.level != \"ok\")'",
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	names := cmd.Flags().Bool("names", false, "name unknown fields; such a name may be a personal value")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, set, err := env.load()
		if err != nil {
			return err
		}
		c := preflight.Config{File: env.configFile, Settings: cfg, Schemas: set, Names: *names,
			Requests: new(preflight.Requests)}
		if c.Registry, err = connect.Registry(cfg); err != nil {
			return err
		}
		if c.Cluster, err = connect.Kafka(cfg, instance.Name(), zap.NewNop(), nil); err != nil {
			return err
		}
		defer c.Cluster.Close()
		if c.Sources, err = connect.OpenSources(cfg, zap.NewNop(), c.Requests.Watch); err != nil {
			return err
		}
		defer c.Sources.Close()
		return check(cmd.Context(), env, c, *asJSON)
	}
	return cmd
}

// check prints each finding as soon as it is known, or all of them as JSON.
func check(ctx context.Context, env *environment, c preflight.Config, asJSON bool) error {
	// Texts begin below each other, behind the longest names that there are.
	about := max(len("service order_items"), len("kafka "+c.Cluster.DeadLetters()))
	all, levels := []preflight.Finding{}, map[preflight.Level]int{}
	for f := range preflight.Try(ctx, c) {
		all = append(all, f)
		levels[f.Level]++
		if !asJSON {
			env.print("%-4s  %-*s  %s", f.Level, about, strings.TrimSpace(f.Part+" "+f.About), f.Found)
			if f.Do != "" {
				env.print(" -> %s", f.Do)
			}
			env.print("\n")
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if asJSON {
		if err := env.printJSON(all); err != nil {
			return err
		}
	}
	if n := levels[preflight.Failure]; n > 0 {
		return fmt.Errorf("%d of %d checks fail: `run` waits for them, and goes on by itself once they are mended",
			n, len(all))
	}
	if !asJSON {
		env.print("\nNothing fails (%d checked, %d to be known, %s).\n", len(all), levels[preflight.Note],
			terminal.Plural(levels[preflight.Warning], "warning"))
	}
	return nil
}
