// Command demo is all of storestream on one machine with nothing to install. PostgreSQL is found or fetched,
// and PgBouncer is used if it is installed. It runs an embedded broker and schema registry on real ports, a
// stand-in for the commerce data service with live traffic, and storestream itself. All parts end with it,
// and it removes the folders that it made.
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
