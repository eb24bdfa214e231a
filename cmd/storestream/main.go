// Command storestream polls a read-only commerce data service and publishes its rows to Kafka. People and
// scripts rely on its commands, flags, outputs and exit statuses: docs/reference.md lists them.
//
// This package has the wording: flags, texts, tables and exit statuses, one file a command. The packages of
// cmd/storestream/internal make the decisions, and can be tested without flags.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal ends the work in hand in good order, a second one kills
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// The exit statuses.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2 // wrong usage or configuration
	exitDifferent = 3 // topic and service differ
	exitLate      = 4 // watermark list found something that is not up to date
)

// run does what args say and returns the exit status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, args, &environment{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr,
		terminal: terminal.Is(stdin) && terminal.Is(stdout),
		paint:    terminal.PaintFor(terminal.Is(stdout), environ)})
}

func execute(ctx context.Context, args []string, env *environment) int {
	// Errors and rows hold text of others. It must not move a cursor or turn a line around, and must not show a
	// secret that they repeat. A row is shown as it is, even if a value happens to read like a secret of the
	// configuration. If it were masked, readers would take the mask for the topic's value, and a masked number
	// would break the JSON.
	rows := &terminal.Writer{W: env.stdout, Paint: env.paint}
	stdout := &terminal.Writer{W: env.stdout, Paint: env.paint, Hide: env.hide}
	env.rows, env.stdout = rows, stdout
	env.stderr = &terminal.Writer{W: env.stderr, Hide: env.hide}
	root := rootCommand(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	usage := err != nil && !env.begun && stdout.Err == nil // cobra's own errors too

	if err == nil { // a full disk must not leave half an answer that counts as one
		err = cmp.Or(stdout.Err, rows.Err)
	}
	if err == nil {
		return exitDone
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	_, _ = fmt.Fprintf(env.stderr, "storestream: %v\n", err) // where stderr is gone, nobody reads it
	if env.begun && env.noFile && env.configFile == "" {     // in the wrong folder the defaults lead elsewhere
		_, _ = fmt.Fprintf(env.stderr, "storestream: no %s here, and neither --config nor %s names a file: "+
			"only defaults, STORESTREAM_ variables and --set count\n", usualFile, config.FileVariable)
	}
	if usage {
		return exitUsage
	}
	return exitStatus(err)
}

// usagef returns an error about the command line that ends with a remedy.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%w (see `%s --help`)", fmt.Errorf(format, args...), cmd.CommandPath())
}

// differentError says that a topic differs from the service.
type differentError struct{ error }

// lateError says that something is not up to date.
type lateError struct{ error }

func exitStatus(err error) int {
	switch {
	case is[*config.InvalidError](err), errors.Is(err, schemas.ErrMistakes):
		return exitUsage
	case is[differentError](err):
		return exitDifferent
	case is[lateError](err):
		return exitLate
	}
	return exitFailed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
