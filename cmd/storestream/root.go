package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/schemas"
)

func rootCommand(env *environment) *cobra.Command {
	root := group(env, &cobra.Command{
		Use:   "storestream",
		Short: "Turn a polled commerce data service into Kafka topics that can be trusted",
		Long: `storestream polls a read-only commerce data service (REST, and PostgreSQL for orders and order
items) and keeps one compacted Kafka topic per resource equal to it.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 verify found differences.`,
		Example: `  storestream check --config storestream.yaml            # does it have everything that it needs?
  storestream run --config storestream.yaml
  storestream watermark list --config storestream.yaml   # is everything up to date?
  storestream verify --config storestream.yaml           # are the topics the service, row by row?
  storestream sweep orders --config storestream.yaml     # have what differs repaired`,
		Version:           fullVersion(), // for --version
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}, runCommand(env), checkCommand(env), watermarkCommand(env), verifyCommand(env), sweepCommand(env),
		tailCommand(env), schemaCommand(env), configCommand(env), versionCommand(env))
	flags := root.PersistentFlags()
	flags.StringVar(&env.configFile, "config", "", "YAML `file` (config/example.yaml holds every key)")
	flags.StringArrayVar(&env.set, "set", nil,
		"set one key of the configuration, as in --set log.level=debug; wins over file and environment")
	root.SetVersionTemplate("storestream {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	return root
}

// group makes cmd a command that only has subcommands. Without one it shows its help, as wrong usage.
func group(env *environment, cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	var names []string
	for _, sub := range commands {
		names = append(names, sub.Name())
	}
	expected := strings.Join(names, ", ")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case len(names) == 1:
			return usagef(cmd, "unknown command %q: expected %s", args[0], expected)
		}
		return usagef(cmd, "unknown command %q: expected one of %s; the nearest is %s",
			args[0], expected, config.Nearest(args[0], names))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SetOut(env.stderr)
		if err := cmd.Help(); err != nil {
			return err
		}
		return usagef(cmd, "no command given: expected one of %s", expected)
	}
	return cmd
}

// flagError names the nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef(cmd, "%w", err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return usagef(cmd, "%w; the nearest is --%s", err, config.Nearest(unknown.GetSpecifiedName(), names))
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q: expected none", args[0])
	}
	return nil
}

// chooseResources is the resources that a command line names, each once, or all of them with --all.
func chooseResources(cmd *cobra.Command, args []string, all bool) ([]string, error) {
	names := schemas.Names()
	switch {
	case all && len(args) > 0:
		return nil, usagef(cmd, "--all and %s: expected one or the other", strings.Join(args, " "))
	case all:
		return names, nil
	case len(args) == 0:
		return nil, usagef(cmd, "no resource given: expected one or more of %s, or --all",
			strings.Join(names, ", "))
	}
	var chosen []string
	for _, arg := range args {
		if err := checkResource(cmd, arg); err != nil {
			return nil, err
		}
		if !slices.Contains(chosen, arg) {
			chosen = append(chosen, arg)
		}
	}
	return chosen, nil
}

// oneResource wants the name of one resource.
func oneResource(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef(cmd, "expected the name of one resource: %s", strings.Join(schemas.Names(), ", "))
	}
	return checkResource(cmd, args[0])
}

func checkResource(cmd *cobra.Command, arg string) error {
	names := schemas.Names()
	if slices.Contains(names, arg) {
		return nil
	}
	return usagef(cmd, "unknown resource %q: expected one of %s; the nearest is %s",
		arg, strings.Join(names, ", "), config.Nearest(arg, names))
}
