package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// The exit statuses of CONTRACT.md.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2 // wrong usage or configuration
	exitDifferent = 3 // verify found differences
)

// app is one call of the program. The environment is a list and not a lookup, because an unknown STORESTREAM_ variable is an error.
type app struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool           // somebody is there to answer a question
	paint          terminal.Paint // for stdout
	engine         engine         // runInstance, but in tests of what surrounds it

	// The flags that every command takes.
	configFile string
	set        []string
}

// run does what args say and returns the exit status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr, terminal: terminal.Is(stdin) && terminal.Is(stdout),
		paint: terminal.PaintFor(terminal.Is(stdout), environ), engine: runInstance}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	_, _ = fmt.Fprintf(a.stderr, "storestream: %v\n", err) // with stderr gone there is nobody to tell
	switch {
	case isUsage(err):
		return exitUsage
	case isDifferent(err):
		return exitDifferent
	}
	return exitFailed
}

// usageError is wrong usage: exit status 2.
type usageError struct{ error }

// usagef says what is wrong with the command line, and ends with what to do.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return usageError{fmt.Errorf("%w (see `%s --help`)", fmt.Errorf(format, args...), cmd.CommandPath())}
}

// isUsage says whether err is for whoever typed the command or wrote the configuration.
func isUsage(err error) bool {
	if _, ok := errors.AsType[usageError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*config.InvalidError](err); ok {
		return true
	}
	_, ok := errors.AsType[*schemas.MistakesError](err)
	return ok
}

// config loads the configuration that the global flags and the environment give.
func (a *app) config() (*config.Config, error) {
	return config.Load(config.Input{File: a.configFile, Environ: a.environ, Set: a.set})
}

// load is the configuration and the schemas that it names.
func (a *app) load() (*config.Config, *schemas.Set, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, nil, err
	}
	set, err := schemas.Load(cfg.Schemas.Dir)
	return cfg, set, err
}

// resources checks the names of resources on a command line; none are all of them where all is set.
func resources(cmd *cobra.Command, args []string, all bool) ([]string, error) {
	names := schemas.Names()
	switch {
	case all && len(args) > 0:
		return nil, usagef(cmd, "--all and %s: expected one or the other", strings.Join(args, " "))
	case all:
		return names, nil
	case len(args) == 0:
		return nil, usagef(cmd, "no resource given: expected one or more of %s, or --all", strings.Join(names, ", "))
	}
	seen := map[string]bool{}
	var chosen []string
	for _, arg := range args {
		if err := resource(cmd, arg); err != nil {
			return nil, err
		}
		if !seen[arg] {
			seen[arg] = true
			chosen = append(chosen, arg)
		}
	}
	return chosen, nil
}

// resource checks the name of one resource.
func resource(cmd *cobra.Command, arg string) error {
	names := schemas.Names()
	for _, name := range names {
		if name == arg {
			return nil
		}
	}
	return usagef(cmd, "unknown resource %q: expected one of %s; the nearest is %s", arg, strings.Join(names, ", "), config.Nearest(arg, names))
}
