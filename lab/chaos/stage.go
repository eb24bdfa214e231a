package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/lab/product"
)

// stage is everything that runs. Nil where a part is not there.
type stage struct {
	plan plan
	dir  string // logs, configurations, data
	out  io.Writer
	race raceMode
	// program is storestream as it is released, watched one built with the race detector; config is the instances' configuration, commands that of
	// the command line.
	program, watched, config, commands string

	postgres  *servers.Postgres
	pooler    *pooler
	broker    *broker
	registry  *registry
	fake      *storefake.Fake
	load      *load
	tail      *tail
	probes    *probes
	instances []*instance

	began time.Time // when the instances were started
	busy  [targets]sync.Mutex
	stops []func() error

	mu    sync.Mutex
	wrong []error // what must not happen, and did
}

// onStop has f called when all ends, before what was started earlier is stopped.
func (s *stage) onStop(f func() error) { s.stops = append(s.stops, f) }

// stop stops everything in reverse.
func (s *stage) stop() error {
	var errs []error
	for _, f := range slices.Backward(s.stops) {
		errs = append(errs, f())
	}
	s.stops = nil
	return errors.Join(errs...)
}

// fail notes what must not happen.
func (s *stage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, err)
	s.say("WRONG: %v", err)
}

// say prints a line with the time since the instances were started.
func (s *stage) say(format string, args ...any) {
	at := "       "
	if !s.began.IsZero() {
		at = fmt.Sprintf("%7s", clockText(time.Since(s.began)))
	}
	fmt.Fprintf(s.out, at+"  "+format+"\n", args...)
}

// build brings all parts up, in order.
func (s *stage) build(ctx context.Context) error {
	for _, start := range []func(context.Context) error{
		s.findPrograms, s.startDatabase, s.startBroker, s.startRegistry, s.startService, s.configure, s.startReaders,
	} {
		if err := start(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for n := range s.plan.instances {
		s.instances = append(s.instances, &instance{n: n, path: s.programOf(n), config: s.config, dir: s.dir, failed: s.fail})
	}
	s.onStop(func() error {
		var errs []error
		for _, i := range s.instances {
			errs = append(errs, i.kill())
		}
		return errors.Join(errs...)
	})
	return nil
}

// raceMode says which instances are built with the race detector. It makes reading small compressed batches two thousand times slower (the
// decompressor's pools do not pool under it), so a takeover after half an hour takes a minute: long runs watch one instance.
type raceMode string

const (
	raceAll  raceMode = "all"
	raceOne  raceMode = "one"
	raceNone raceMode = "none"
)

func (s *stage) findPrograms(ctx context.Context) error {
	s.program, s.watched = filepath.Join(s.dir, "storestream"), filepath.Join(s.dir, "storestream-race")
	if err := product.Build(ctx, s.program, nil); err != nil || s.race == raceNone {
		return err
	}
	return product.Build(ctx, s.watched, []string{"CGO_ENABLED=1"}, "-race")
}

// programOf is what instance n runs.
func (s *stage) programOf(n int) string {
	if s.race == raceAll || s.race == raceOne && n == 0 {
		return s.watched
	}
	return s.program
}

func (s *stage) startDatabase(ctx context.Context) (err error) {
	if s.plan.source == fromREST {
		return nil
	}
	if s.postgres, err = servers.StartPostgres(ctx, servers.PostgresConfig{Dir: filepath.Join(s.dir, "postgres")}); err != nil {
		return err
	}
	s.onStop(s.postgres.Stop)
	if s.pooler, err = startPooler(ctx, s.postgres, s.dir); err != nil {
		return err
	}
	s.onStop(s.pooler.stop)
	return nil
}

func (s *stage) startBroker(ctx context.Context) (err error) {
	if s.broker, err = startBroker(ctx, s.plan.broker, s.dir); err != nil {
		return err
	}
	s.onStop(s.broker.stop)
	return nil
}

func (s *stage) startRegistry(ctx context.Context) (err error) {
	if s.registry, err = startRegistry(ctx, s.plan.registry, s.dir); err != nil {
		return err
	}
	s.onStop(s.registry.stop)
	return nil
}

// startService starts the stand-in. Its clock is behind ours by what the plan says.
func (s *stage) startService(ctx context.Context) (err error) {
	p := &s.plan.service
	c := storefake.Config{Seed: s.plan.seed, Size: p.size, Readings: p.readings, WholeSeconds: p.wholeSeconds}
	if s.postgres != nil {
		c.Database = storefake.Database{DSN: s.postgres.AdminDSN(databaseName), Password: readerPassword, Columns: p.columns, NoIndex: p.noIndex}
	} else {
		c.Start, c.Speed = time.Now().Add(-p.behind), p.speed
	}
	if s.fake, err = storefake.Start(ctx, c); err != nil {
		return err
	}
	s.onStop(func() error { s.fake.Close(); return nil })
	return nil
}

// configure writes the instances' configuration, and that of the command line, which goes past the proxies.
func (s *stage) configure(context.Context) error {
	s.config, s.commands = filepath.Join(s.dir, "storestream.yaml"), filepath.Join(s.dir, "commands.yaml")
	dsn := ""
	if s.pooler != nil {
		dsn = s.pooler.dsn()
	}
	return errors.Join(
		os.WriteFile(s.config, []byte(s.configuration(s.broker.proxy.address(), s.registry.url(), dsn)), 0o600),
		os.WriteFile(s.commands, []byte(s.configuration(s.broker.command(), s.registry.direct, dsn)), 0o600),
	)
}

func (s *stage) configuration(broker, registry, dsn string) string {
	p := &s.plan.polling
	var text strings.Builder
	fmt.Fprintf(&text, "store: {base_url: %q, max_requests_per_second: %d, request_timeout: 4s}\n", s.fake.BaseURL(), p.requestsPerSecond)
	fmt.Fprintf(&text, "postgres: {dsn: %q}\nkafka: {brokers: [%q], partitions: %d}\nregistry: {url: %q}\n", dsn, broker, s.plan.partitions, registry)
	fmt.Fprintf(&text, "http: {listen: \"127.0.0.1:0\"}\nlog: {level: info}\nsweep: {interval: 0s}\nresources:\n")
	for _, name := range storefake.Names() {
		interval, overlap := p.restInterval, p.restOverlap
		if s.readsTable(name) {
			interval, overlap = p.interval, p.overlap
		}
		fmt.Fprintf(&text, "  %s: {interval: %s, overlap: %s}\n", name, interval, overlap)
	}
	return text.String()
}

// readsTable says whether a resource is read from PostgreSQL.
func (s *stage) readsTable(resource string) bool {
	return s.postgres != nil && (resource == storefake.Orders || resource == storefake.OrderItems)
}

// startReaders starts what watches: the topics' reader, the load and the probes. None changes or asks for anything yet.
func (s *stage) startReaders(ctx context.Context) (err error) {
	if s.tail, err = startTail(s.broker.options, newDecoder(s.registry.direct)); err != nil {
		return err
	}
	s.onStop(s.tail.stop)
	s.load = newLoad(s)
	s.probes = newProbes(s)
	return nil
}

func (s *stage) startInstances() error {
	var errs []error
	for _, i := range s.instances {
		errs = append(errs, i.start())
	}
	return errors.Join(errs...)
}

// command runs storestream's command line past the proxies. That it fails while Kafka is away is noted, and no more.
func (s *stage) command(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, append(args, "--config", s.commands)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.say("storestream %s: %v: %s", strings.Join(args, " "), err, lastLine(string(out)))
	}
	return nil
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
