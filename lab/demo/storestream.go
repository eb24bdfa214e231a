package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/lab/product"
)

// patience is how long storestream may take to finish and commit the batches in hand.
const patience = 15 * time.Second

// findProgram finds storestream next to this program, where make puts both, or builds it into the private folder.
func (d *demo) findProgram(ctx context.Context) error {
	if d.program = d.storestream; d.program != "" {
		path, err := exec.LookPath(d.program)
		if err != nil {
			return fmt.Errorf("--storestream: %w", err)
		}
		d.program, err = filepath.Abs(path)
		return err
	}
	if own, err := os.Executable(); err == nil {
		d.program = filepath.Join(filepath.Dir(own), "storestream")
		if _, err := exec.LookPath(d.program); err == nil {
			return nil
		}
	}
	return d.build(ctx)
}

func (d *demo) build(ctx context.Context) error {
	d.program = filepath.Join(d.folder, "storestream")
	d.screen.note("building storestream into %s", d.folder)
	began := time.Now()
	if err := product.Build(ctx, d.program, nil); err != nil {
		return fmt.Errorf("there is no storestream next to this program (--storestream names one elsewhere): %w", err)
	}
	d.screen.note("built in %s", duration(time.Since(began)))
	return nil
}

// startStorestream starts the product as anybody would: a program with a configuration file.
func (d *demo) startStorestream(context.Context) error {
	d.config = filepath.Join(d.folder, "storestream.yaml")
	if err := os.WriteFile(d.config, []byte(d.configuration()), 0o600); err != nil {
		return fmt.Errorf("write storestream's configuration: %w", err)
	}
	p, err := servers.StartProgram(servers.ProgramConfig{
		Name: "storestream", Path: d.program, Args: []string{"run", "--config", d.config}, Environ: withoutSettings(d.environ),
		Dir: d.folder, Log: d.log(), Patience: patience,
	})
	if err != nil {
		return err
	}
	d.stream = p
	d.onStop(p.Stop)
	d.screen.part("storestream", "http://"+d.ports.status.address(), "status page", d.ports.status.remark())
	d.screen.part("  configuration", d.config)
	d.screen.part("  log", d.log())
	return nil
}

func (d *demo) log() string { return filepath.Join(d.folder, "storestream.log") }

// withoutSettings is the environment without storestream's settings: they would win over the file, and lead it to another broker.
func withoutSettings(environ []string) []string {
	kept := []string{}
	for _, variable := range environ {
		if !strings.HasPrefix(variable, "STORESTREAM_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// configuration is storestream's, all that differs from the defaults. Quoted strings are YAML's double-quoted ones: nothing in them is special to it.
func (d *demo) configuration() string {
	var text strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	p("# Written by the demo. What is not here has its default, see config/example.yaml.")
	p("store:")
	p("  base_url: %q", d.store.BaseURL())
	p("  max_requests_per_second: 50  # the stand-in bears it; a real service should get fewer")
	if dsn := d.readerDSN(); dsn != "" {
		p("postgres:")
		p("  dsn: %q", dsn)
	}
	p("kafka:")
	p("  brokers: [%q]", d.ports.broker.address())
	p("registry:")
	p("  url: %q", d.registry.URL)
	p("resources:  # whoever watches does not want to wait half a minute")
	for _, name := range d.restResources() {
		p("  %s: {interval: 2s}", name)
	}
	p("http:")
	p("  listen: %q", d.ports.status.address())
	p("log:")
	p("  format: console")
	return text.String()
}

// restResources is what goes over REST.
func (d *demo) restResources() []string {
	names := []string{"products", "users", "shipments"}
	if d.postgres == nil {
		names = append([]string{"orders", "order_items"}, names...)
	}
	return names
}
