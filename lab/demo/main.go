// Command demo is all of storestream on one machine with nothing to install: PostgreSQL and PgBouncer where
// they can be had, an embedded broker and schema registry on real ports, a stand-in for the commerce data
// service with live traffic, and storestream itself. What it starts ends with it, and the folders that it
// makes go too.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the first signal ends everything in good order, a second one kills
	// A reader that goes (demo | head) must not kill this process before it has cleaned up: with the signal
	// caught, the write fails instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
