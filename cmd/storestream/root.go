package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/schemas"
)

func rootCommand(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "storestream",
		Short: "Turn a polled commerce data service into Kafka topics that can be trusted",
		Long: `storestream polls a read-only commerce data service over REST and PostgreSQL.
It keeps one compacted Kafka topic for each resource equal to the service.

Configuration: the file in --config, else in STORESTREAM_CONFIG, else
./storestream.yaml.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 topic and
service differ, 4 not up to date.`,
		Example: `  storestream check              # is everything there that run needs?
  storestream run --once         # publish all that is visible now, and exit
  storestream watermark list     # is everything up to date?
  storestream verify             # do the topics match the service?
  storestream row users 123      # is row 123 right, and if not, why?
  storestream sweep orders       # repair the rows that differ`,
		Version:       fullVersion(), // for --version
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          noCommand,
	}
	root.AddCommand(runCommand(env), checkCommand(env), watermarkCommand(env), verifyCommand(env),
		sweepCommand(env), replayCommand(env), pauseCommand(env), resumeCommand(env), rowCommand(env),
		eraseCommand(env), requestsCommand(env), deadLettersCommand(env), tailCommand(env), schemaCommand(env),
		topicsCommand(env), configCommand(env))
	flags := root.PersistentFlags()
	flags.StringVar(&env.configFile, "config", env.usualConfig(),
		"YAML `file`, by default "+config.FileVariable+" or ./"+usualFile)
	flags.StringArrayVar(&env.set, "set", nil,
		"set one key: `KEY=VALUE`, such as log.level=debug")
	_ = root.RegisterFlagCompletionFunc("set", completeKeys) // the flag is there
	root.SetVersionTemplate("storestream {{.Version}}\n")
	root.SetUsageTemplate(strings.NewReplacer(".FlagUsages", ".FlagUsagesWrapped 80",
		" for more information about a command", " for more").Replace(root.UsageTemplate()))
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	return root
}

// group makes cmd a command that only has subcommands.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.Args, cmd.RunE = cobra.NoArgs, noCommand
	return cmd
}

// noCommand is the error of a command that is none without a subcommand. Cobra would exit with 0.
func noCommand(cmd *cobra.Command, _ []string) error { return usagef(cmd, "expected a command") }

// resourceArgs accepts the names of so many resources.
func resourceArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		every := schemas.Names()
		if len(args) < least || len(args) > most {
			return usagef(cmd, "expected `%s`, with RESOURCE one of %s", cmd.UseLine(), strings.Join(every, ", "))
		}
		for _, arg := range args {
			if !slices.Contains(every, arg) {
				return usagef(cmd, "unknown resource %q: expected one of %s", arg, strings.Join(every, ", "))
			}
		}
		return nil
	}
}

// unique returns each of names once.
func unique(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// completeKeys offers the keys of the configuration, as in --set log.level=.
func completeKeys(_ *cobra.Command, _ []string, typed string) (keys []string, _ cobra.ShellCompDirective) {
	defaults, err := config.Load(config.Input{})
	if err == nil { // always: the defaults hold no mistake
		for _, e := range defaults.Entries() {
			if strings.HasPrefix(e.Key, typed) {
				keys = append(keys, e.Key+"=")
			}
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
