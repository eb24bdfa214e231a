package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/storestream/storestream/config"
)

func (a *app) root() *cobra.Command {
	root := a.group(&cobra.Command{
		Use:   "storestream",
		Short: "Turn a polled commerce data service into Kafka topics that can be trusted",
		Long: `storestream polls a read-only commerce data service (REST, and PostgreSQL for orders and
order items) and keeps one compacted Kafka topic per resource equal to it.

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
	}, a.runCommand(), a.checkCommand(), a.watermarkCommand(), a.verifyCommand(), a.sweepCommand(), a.tailCommand(), a.schemaCommand(), a.configCommand(), a.versionCommand())
	flags := root.PersistentFlags()
	flags.StringVar(&a.configFile, "config", "", "YAML `file` (config/example.yaml holds every key)")
	flags.StringArrayVar(&a.set, "set", nil, "set one key of the configuration, as in --set log.level=debug; wins over file and environment")
	root.SetVersionTemplate("storestream {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return root
}

// group makes cmd a command that only has subcommands: without one it shows its help, as wrong usage.
func (a *app) group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	var names []string
	for _, sub := range commands {
		names = append(names, sub.Name())
	}
	expected := strings.Join(names, ", ")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usagef(cmd, "unknown command %q: expected one of %s; the nearest is %s", args[0], expected, config.Nearest(args[0], names))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SetOut(a.stderr)
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

// outputFlag adds -o. "" is what a person reads.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "`form` of the output: json (default: for a person to read)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *output != "" && *output != "json" {
			return usagef(cmd, "-o %s: expected json", *output)
		}
		return nil
	}
}

// print writes to stdout; a pipe that was closed early is the reader's choice.
func (a *app) print(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stdout, format, args...)
}
