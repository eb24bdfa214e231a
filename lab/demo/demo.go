package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// run carries out args and returns the exit status.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err == nil {
		err = newDemo(o, environ, stdout).run(ctx)
	}
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return exitDone
	}
	_, _ = fmt.Fprintf(stderr, "demo: %v\n", err) // if stderr fails, only the exit status is left
	if _, ok := errors.AsType[usageError](err); ok {
		_, _ = fmt.Fprintln(stderr, "`demo --help` shows every flag and an example")
		return exitUsage
	}
	return exitFailed
}

// demo starts all parts, and stops those that it started.
type demo struct {
	options
	environ []string
	screen  *screen
	started time.Time
	stops   []func() error
	apache  *servers.Kafka // nil if the broker is embedded
}

func newDemo(o options, environ []string, stdout io.Writer) *demo {
	return &demo{options: o, environ: environ, screen: newScreen(stdout, environ), started: time.Now()}
}

// run starts the parts one after the other and shows their work until ctx is done, the time is over, or a
// part fails. Then it stops them in reverse. An interrupt is no error.
func (d *demo) run(ctx context.Context) (err error) {
	d.screen.print(d.screen.paint.as(bold, "storestream demo")+
		": all parts run on this machine. Ctrl-C stops them.", "")
	defer func() { err = errors.Join(err, d.stop()) }()
	w, err := d.start(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	w.invite(ctx)
	return w.run(ctx)
}

// start starts everything.
func (d *demo) start(ctx context.Context) (*watch, error) {
	// The folder for shared files: storestream's configuration, log, and maybe program.
	folder, remove, err := servers.TemporaryFolder("demo")
	if err != nil {
		return nil, err
	}
	d.onStop(func() error { remove(); return nil })
	if err := d.ports.settle(); err != nil {
		return nil, err
	}
	program, err := findProgram(ctx, d.screen, d.storestream, folder)
	if err != nil {
		return nil, err
	}
	if d.kafka {
		if err := fetchKafka(ctx, d.screen); err != nil {
			return nil, err
		}
	}
	db, err := startDatabase(ctx, d.screen, &d.ports, d.noPostgres)
	if db != nil {
		d.onStop(db.stop)
	}
	if err != nil {
		return nil, err
	}
	registry, err := d.startKafka(ctx)
	if err != nil {
		return nil, err
	}
	shop, err := d.startShop(ctx, db)
	if err != nil {
		return nil, err
	}
	stream, err := startStorestream(d.screen, &d.ports, d.environ, program, folder,
		configuration(shop, db, &d.ports, registry))
	if err != nil {
		return nil, err
	}
	d.onStop(func() error { return stream.Stop() }) // of the one that runs then
	return &watch{screen: d.screen, ports: &d.ports, length: d.length, db: db, shop: shop, stream: stream,
		apache: d.apache, registry: registry, since: time.Now()}, nil
}

// startShop starts the stand-in for the service, with its history and its traffic.
func (d *demo) startShop(ctx context.Context, db *database) (*storefake.Fake, error) {
	d.screen.starting("data service")
	began := time.Now()
	c := storefake.Config{Listen: d.ports.service.address(), Seed: d.seed, Size: d.size}
	if db != nil {
		c.Database = storefake.Database{DSN: db.postgres.AdminDSN(databaseName), Password: readerPassword}
	}
	shop, err := storefake.Start(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("data service: %w", err)
	}
	d.onStop(func() error { shop.Close(); return nil })
	rows := 0
	for _, name := range storefake.Names() {
		rows += shop.Count(name)
	}
	made := fmt.Sprintf("stand-in, %s rows in %s", terminal.Count(rows),
		terminal.Duration(time.Since(began)))
	d.screen.part("data service", shop.BaseURL(), made, d.ports.service.remark())
	shop.StartTraffic(d.traffic)
	return shop, nil
}

// onStop registers f to be called at the end, before the parts that were started earlier are stopped.
func (d *demo) onStop(f func() error) { d.stops = append(d.stops, f) }

// stop stops everything in reverse.
func (d *demo) stop() error {
	if len(d.stops) > 1 { // more than a folder
		d.screen.farewell("stopping")
	}
	var errs []error
	for _, f := range slices.Backward(d.stops) {
		errs = append(errs, f())
	}
	err := errors.Join(errs...)
	if err == nil && len(d.stops) > 0 {
		d.screen.note("stopped after %s; nothing is left behind", terminal.Duration(time.Since(d.started)))
	}
	return err
}
