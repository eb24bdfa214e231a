// Command storefake stands in for the commerce data service: see package storefake.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/internal/standins/storefake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "storefake:", err)
	if errors.As(err, new(*usageError)) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is a wrong flag, or a setting that cannot be: exit status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

const long = `storefake stands in for the commerce data service: its REST endpoints over a seeded, synthetic
shop, and with --postgres the same orders and order_items in a real PostgreSQL, readable by role student_ro.
Rows change like a shop's while it runs. SIGUSR1 stops that, and starts it again. Do not point it at real
data: at its start it drops and creates the tables orders and order_items.`

const example = `  storefake --listen 127.0.0.1:8090 --orders 5000 --users 1000 --products 500 --traffic 20 \
            --postgres postgres://postgres@127.0.0.1:5432/store

  key=$(curl -s http://127.0.0.1:8090/v1/store-api-keys | cut -d'"' -f4)
  curl -s -H "Authorization: Bearer $key" \
       'http://127.0.0.1:8090/v1/store-orders?updated_from=2026-11-01&page_size=2'

  # a service that pages by newest change, grants 37 rows a page, limits requests and fails now and then
  storefake --order updated-desc --max-page 37 --limit 5 --fault 500=0.02 --fault truncated=0.01

  # a PHP service whose pages end at 10,000 rows and take too long above 500
  storefake --stack php --nulls 0.05 --refuse past:10000=422 --refuse rows:500=504

  # one that answers from replicas of different age, loses a field for half a minute, and is then restored
  storefake --traffic 20 --replicas 3 --replica-lag 5s --without users.city --from 30s --until 60s \
            --restore 2m=1m`

// run serves until ctx is done. Where everything listens goes to stdout.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	var s settings
	cmd := &cobra.Command{Use: "storefake", Short: "Stand in for the commerce data service", Long: long,
		Example: example, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.Database.DSN == "" { // it holds a password, and every user can read command lines
				s.Database.DSN = getenv("STOREFAKE_POSTGRES")
			}
			return serve(cmd.Context(), &s, stdout)
		}}
	s.declare(cmd.Flags())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cmd.ExecuteContext(ctx)
}

func serve(ctx context.Context, s *settings, stdout io.Writer) error {
	config, err := s.config()
	if err != nil {
		return &usageError{err}
	}
	fake, err := storefake.Start(ctx, config)
	if ctx.Err() != nil && err != nil {
		return nil // stopped while it was still filling its tables
	}
	if err != nil {
		return err
	}
	defer fake.Close()
	if err := fake.RenameColumns(ctx, config.Readings.Without); err != nil {
		return err
	}
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	defer signal.Stop(usr1)
	announce(stdout, fake)
	var playing sync.WaitGroup
	playing.Go(func() { play(ctx, s.turns, fake, stdout) })
	traffic(ctx, s.traffic, fake, usr1, stdout)
	playing.Wait()
	fake.Quiesce()
	if n, last := fake.TrafficErrors(); n > 0 {
		fmt.Fprintf(stdout, "%d of traffic's transactions failed, the last one with: %v\n", n, last)
	}
	fmt.Fprintln(stdout, "stopped")
	return nil
}

// traffic changes rows until ctx is done. Each signal stops it, or starts it again.
func traffic(ctx context.Context, perSecond float64, fake *storefake.Fake, signals <-chan os.Signal,
	stdout io.Writer) {
	for on := perSecond > 0; ; {
		if on {
			fake.StartTraffic(perSecond)
			fmt.Fprintf(stdout, "traffic      %v changes a second\n", perSecond)
		}
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if on {
			fake.Quiesce()
			fmt.Fprintln(stdout, "traffic      stopped")
		}
		on = !on && perSecond > 0
	}
}

func announce(w io.Writer, fake *storefake.Fake) {
	fmt.Fprintf(w, "rest         %s\n", fake.BaseURL())
	if dsn := fake.ReaderDSN(); dsn != "" {
		fmt.Fprintf(w, "postgres     %s\n", dsn)
	}
	fmt.Fprintf(w, "clock        %s\n", fake.Clock().Now().Format("2006-01-02T15:04:05Z"))
	for _, resource := range storefake.Names() {
		fmt.Fprintf(w, "%-13s%d rows\n", resource, fake.Count(resource))
	}
}
