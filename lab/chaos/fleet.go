package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/product"
)

// raceMode says which instances are built with the race detector. It makes reading small compressed batches
// two thousand times slower (the decompressor's pools do not pool under it), so a takeover after half an hour
// takes a minute: long runs watch one instance.
type raceMode string

const (
	raceAll  raceMode = "all"
	raceOne  raceMode = "one"
	raceNone raceMode = "none"
)

// fleet is storestream: its programs, their configuration, and the instances that run.
type fleet struct {
	dir       string
	program   string // as it is released
	config    string // of the instances, which reach their surroundings through proxies
	commands  string // of the command line, which goes past the proxies
	around    *surroundings
	memory    memory // memory settings for instances that restart
	journal   *journal
	instances []*instance
}

// newFleet builds the programs and writes their configuration. No instance runs yet.
func newFleet(ctx context.Context, around *surroundings, dir string, race raceMode, j *journal) (*fleet,
	error) {
	f := &fleet{dir: dir, program: filepath.Join(dir, "storestream"), around: around, journal: j,
		config: filepath.Join(dir, "storestream.yaml"), commands: filepath.Join(dir, "commands.yaml")}
	watched := filepath.Join(dir, "storestream-race")
	err := product.Build(ctx, f.program, nil)
	if err == nil && race != raceNone {
		err = product.Build(ctx, watched, []string{"CGO_ENABLED=1"}, "-race")
	}
	if err != nil {
		return nil, err
	}
	err = f.configure(around.plan.polling.memory)
	ports, portsErr := servers.FreePorts(around.plan.instances)
	if err := errors.Join(err, portsErr); err != nil {
		return nil, err
	}
	for n, port := range ports {
		i := &instance{n: n, path: f.program, config: f.config, dir: dir, page: address(port), failed: j.fail}
		if race == raceAll || race == raceOne && n == 0 {
			i.path = watched
		}
		f.instances = append(f.instances, i)
	}
	return f, nil
}

// configure writes the configuration, with so much poll.memory.
func (f *fleet) configure(m memory) error {
	f.memory = m
	proxied := configuration(f.around, m, f.around.broker.proxy.address(), f.around.registry.url())
	direct := configuration(f.around, m, f.around.broker.command(), f.around.registry.direct)
	return errors.Join(replaceFile(f.config, proxied), replaceFile(f.commands, direct))
}

// replaceFile replaces a file at once, so that a reader never sees half of it.
func replaceFile(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// restartWith gives all instances so much poll.memory, one after the other.
func (f *fleet) restartWith(m memory) error {
	if err := f.configure(m); err != nil {
		return err
	}
	return f.each(func(i *instance) error {
		i.terminate()
		return i.start()
	})
}

// configuration is storestream's, by the plan.
func configuration(around *surroundings, m memory, broker, registry string) string {
	p := &around.plan.polling
	var text strings.Builder
	fmt.Fprintf(&text, "store: {base_url: %q, max_requests_per_second: %d, request_timeout: 4s}\n",
		around.fake.BaseURL(),
		p.requestsPerSecond)
	fmt.Fprintf(&text, "postgres: {dsn: %q}\nkafka: {brokers: [%q], partitions: %d}\nregistry: {url: %q}\n",
		around.readerDSN(), broker, around.plan.partitions, registry)
	fmt.Fprintf(&text,
		"http: {listen: \"127.0.0.1:0\"}\nlog: {level: info}\nsweep: {interval: 0s, memory: 16MiB}\n"+
			"poll: {memory: %dKiB}\nresources:\n", m)
	for _, name := range storefake.Names() {
		interval, overlap := p.restInterval, p.restOverlap
		if around.readsTable(name) {
			interval, overlap = p.interval, p.overlap
		}
		fmt.Fprintf(&text, "  %s: {interval: %s, overlap: %s}\n", name, interval, overlap)
	}
	return text.String()
}

// start starts the instances that do not run.
func (f *fleet) start() error { return f.each((*instance).start) }

// kill is kill -9 of all instances.
func (f *fleet) kill() error { return f.each((*instance).kill) }

func (f *fleet) each(do func(*instance) error) error {
	var errs []error
	for _, i := range f.instances {
		errs = append(errs, do(i))
	}
	return errors.Join(errs...)
}

// named returns the instance that runs the process of this name, or nil.
func (f *fleet) named(name string) *instance {
	for _, i := range f.instances {
		i.mu.Lock()
		pid := i.program.Pid()
		i.mu.Unlock()
		if strings.HasSuffix(name, fmt.Sprintf("-%d", pid)) {
			return i
		}
	}
	return nil
}

// terminate asks all instances to end, one after the other.
func (f *fleet) terminate() {
	for _, i := range f.instances {
		i.terminate()
	}
}

// finish runs a command that ends by itself, past the proxies. It must end well.
func (f *fleet) finish(ctx context.Context, args ...string) {
	i := &instance{n: len(f.instances), path: f.program, config: f.commands, dir: f.dir, failed: f.journal.fail}
	f.journal.say("%s", args[0])
	if err := i.toTheEnd(ctx, args...); err != nil {
		f.journal.fail(err)
	}
}

// command runs storestream's command line past the proxies. It may fail, for Kafka may be away: that is only
// printed.
func (f *fleet) command(ctx context.Context, args ...string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.program, append(args, "--config", f.commands)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		f.journal.say("storestream %s: %v: %s", strings.Join(args, " "), err, lastLine(string(out)))
	}
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
