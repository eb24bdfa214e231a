package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/storefake"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// run does what args say and returns the exit status.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err == nil {
		err = newDemo(o, environ, stdout).run(ctx)
	}
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return exitDone
	}
	_, _ = fmt.Fprintf(stderr, "demo: %v\n", err) // with stderr gone there is nobody to tell
	if _, ok := errors.AsType[usageError](err); ok {
		_, _ = fmt.Fprintln(stderr, "`demo --help` shows every flag and an example")
		return exitUsage
	}
	return exitFailed
}

// demo is what has been started so far. Nil where a part is not there.
type demo struct {
	options
	environ []string
	screen  *screen

	folder   string
	program  string // storestream's path
	config   string // its configuration's path
	postgres *servers.Postgres
	// databaseOff: somebody had it stopped; databaseTrouble is what went wrong when it was to be stopped or started.
	databaseOff     bool
	databaseTrouble error

	pooler   *servers.PgBouncer
	broker   *servers.Broker
	registry *servers.Registry
	store    *storefake.Fake
	stream   *servers.Program

	started time.Time
	stops   []func() error
}

func newDemo(o options, environ []string, stdout io.Writer) *demo {
	return &demo{options: o, environ: environ, screen: newScreen(stdout, environ), started: time.Now()}
}

// run starts the parts one after the other, shows what they do until ctx is done, the time is over or something ends that should not, and
// stops them in reverse. An interrupt is no error.
func (d *demo) run(ctx context.Context) (err error) {
	d.screen.title("storestream demo", "everything on this machine and in one process tree; Ctrl-C ends it and leaves nothing behind")
	defer func() { err = errors.Join(err, d.stop()) }()
	for _, start := range []func(context.Context) error{
		d.makeFolder, d.settlePorts, d.findProgram,
		d.startPostgres, d.startPooler, d.startBroker, d.startRegistry, d.startStore, d.startTraffic, d.startStorestream,
	} {
		err := start(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.invite(ctx)
	return d.watch(ctx)
}

// onStop has f called when all ends, before what was started earlier is stopped.
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
		d.screen.note("stopped after %s; nothing is left behind", duration(time.Since(d.started)))
	}
	return err
}

// makeFolder makes the folder for what belongs to no single server: storestream's configuration and log, and its binary where it is built here.
func (d *demo) makeFolder(context.Context) error {
	path, remove, err := servers.TemporaryFolder("demo")
	if err != nil {
		return err
	}
	d.folder = path
	d.onStop(func() error { remove(); return nil })
	return nil
}

func (d *demo) settlePorts(context.Context) error { return d.ports.settle() }

func (d *demo) startBroker(context.Context) error {
	b, err := servers.StartBroker(servers.BrokerConfig{Ports: []int{d.ports.broker.number}})
	if err != nil {
		return err
	}
	d.broker = b
	d.onStop(b.Stop)
	d.screen.part("Kafka broker", d.ports.broker.address(), "embedded (kfake), in memory", d.ports.broker.remark())
	return nil
}

func (d *demo) startRegistry(context.Context) error {
	r, err := servers.StartRegistry(d.ports.registry.number)
	if err != nil {
		return err
	}
	d.registry = r
	d.onStop(r.Stop)
	d.screen.part("schema registry", r.URL, "embedded (srfake), in memory", d.ports.registry.remark())
	return nil
}
