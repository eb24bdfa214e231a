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
	exitLate      = 4 // something is not up to date, by watermark list, --wait or run --once
)

// run does what args say and returns the exit status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, args, &environment{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr,
		terminal: terminal.Is(stdin) && terminal.Is(stdout)})
}

func execute(ctx context.Context, args []string, env *environment) int {
	// Errors and rows hold text of others. It must not move a cursor or turn a line around, and must not show a
	// secret that they repeat. A row is shown as it is, even if a value happens to read like a secret of the
	// configuration. If it were masked, readers would take the mask for the topic's value, and a masked number
	// would break the JSON.
	rows := &terminal.Writer{W: env.stdout}
	stdout := &terminal.Writer{W: env.stdout, Hide: env.hide}
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
	_, _ = fmt.Fprintf(env.stderr, "storestream: %v\n", err) // if stderr is closed, the text is lost
	if env.begun && env.noFile && env.configFile == "" {     // in the wrong folder the defaults lead elsewhere
		_, _ = fmt.Fprintf(env.stderr, "storestream: no %s here, and neither --config nor %s names a file: "+
			"only defaults, STORESTREAM_ variables and --set count\n", usualFile, config.FileVariable)
	}
	if one, ok := errors.AsType[exitError](err); ok {
		return one.status
	}
	if usage {
		return exitUsage
	}
	return exitFailed
}

// usagef returns an error about the command line that ends with a remedy.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%w (see `%s --help`)", fmt.Errorf(format, args...), cmd.CommandPath())
}

// exitError is an error with an exit status of its own.
type exitError struct {
	status int
	error
}
