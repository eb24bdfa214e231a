package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// run is the bench, or one of the processes that it starts of itself.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "broker":
			return serveBroker(ctx, stdout)
		case "service":
			return serveService(ctx, args[1:], stdout)
		case "check":
			return check(ctx, args[1:], stdout)
		}
	}
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	return measure(ctx, o, stdout)
}
