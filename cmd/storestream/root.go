package main

import (
	"errors"
	"slices"
	"strconv"
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

The configuration is the file that --config or STORESTREAM_CONFIG names, else ./storestream.yaml.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 topic and service differ, 4 not up to
date (watermark list).`,
		Example: `  storestream check              # does it have everything that it needs?
  storestream run --once         # publish all that is visible now, then exit
  storestream watermark list     # is everything up to date?
  storestream verify             # are the topics the service, row by row?
  storestream row users 123      # is row 123 right, and if not, why?
  storestream sweep orders       # have what differs repaired`,
		Version:       fullVersion(), // for --version
		SilenceErrors: true,
		SilenceUsage:  true,
	}, runCommand(env), checkCommand(env), watermarkCommand(env), verifyCommand(env), sweepCommand(env),
		rowCommand(env), eraseCommand(env), tailCommand(env), schemaCommand(env), configCommand(env),
		versionCommand(env))
	root.PersistentPreRun = env.noteNoFile
	flags := root.PersistentFlags()
	usual, _ := env.usualConfig()
	env.configFile = usual
	flags.Var(&once{value: &env.configFile}, "config",
		"YAML `file` (config/example.yaml holds every key); without: "+config.FileVariable+", or ./"+usualFile)
	flags.StringArrayVar(&env.set, "set", nil,
		"set one key of the configuration, as in --set log.level=debug; wins over file and environment")
	_ = root.RegisterFlagCompletionFunc("set", completeKeys) // the flag is there
	root.SetVersionTemplate("storestream {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	addCompletion(root)
	return root
}

// once is a flag that may be given once. Otherwise a second value would silently replace the first.
type once struct {
	value *string
	given bool
}

func (o *once) Set(text string) error {
	if o.given {
		return errors.New("given twice, expected once")
	}
	*o.value, o.given = text, true
	return nil
}

func (o *once) String() string { return *o.value }

func (o *once) Type() string { return "string" }

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
		return usagef(cmd, "unknown command %q: expected one of %s%s", args[0], expected, nearest(args[0], names))
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

// flagError names the nearest flag, or the expected form of a flag's value.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag, expected := invalid.GetFlag(), invalid.Unwrap().Error()
		switch flag.Value.Type() { // whose parsers speak of themselves
		case "int":
			expected = "expected a whole number, such as 10"
		case "duration":
			expected = "expected a duration with its unit, such as 30s, 2m or 24h"
		case "bool":
			expected = "expected true or false"
		}
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		return usagef(cmd, "%s %q: %s", name, invalid.GetValue(), expected)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef(cmd, "%w", err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return usagef(cmd, "%w%s", err, nearest("--"+unknown.GetSpecifiedName(), names))
}

// flagOrIDError is flagError of a command that takes ids: one below 0 looks like a flag.
func flagOrIDError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return flagError(cmd, err)
	}
	id := "-" + unknown.GetSpecifiedShortnames()
	if _, noID := strconv.ParseInt(id, 10, 64); noID != nil {
		return flagError(cmd, err)
	}
	return usagef(cmd, "%s is no flag: expected ids below 0 after -- and all flags before it, such as "+
		"%s users -- %s", id, cmd.CommandPath(), id)
}

// nearest is the end of a sentence that names what an unknown name was likely meant to be; "": nothing near.
func nearest(unknown string, known []string) string {
	if name := config.NearMiss(unknown, known); name != "" {
		return "; the nearest is " + name
	}
	return ""
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q: expected none", args[0])
	}
	return nil
}

// chooseResources is the resources that a command line names, each once. With --all there are none: the
// configuration says which they are (enabled).
func chooseResources(cmd *cobra.Command, args []string, all bool) ([]string, error) {
	names := schemas.Names()
	switch {
	case all && len(args) > 0:
		return nil, usagef(cmd, "--all and %s: expected one or the other", strings.Join(args, " "))
	case all:
		return nil, nil
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
	return usagef(cmd, "unknown resource %q: expected one of %s%s",
		arg, strings.Join(names, ", "), nearest(arg, names))
}
