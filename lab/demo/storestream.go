package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/lab/product"
)

// patience is how long storestream may take to finish and commit the batches in hand.
const patience = 15 * time.Second

// findProgram finds the storestream that the user named, or the one next to this program, if make put both
// there, or builds one into folder.
func findProgram(ctx context.Context, s *screen, named, folder string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("--storestream: %w", err)
		}
		return filepath.Abs(path)
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), "storestream")
		if _, err := exec.LookPath(beside); err == nil {
			return beside, nil
		}
	}
	s.note("building storestream into %s", folder)
	began, path := time.Now(), filepath.Join(folder, "storestream")
	if err := product.Build(ctx, path, nil); err != nil {
		return "", fmt.Errorf("there is no storestream next to this program "+
			"(--storestream names one elsewhere): %w", err)
	}
	s.note("built in %s", terminal.Duration(time.Since(began)))
	return path, nil
}

// stream is the running storestream.
type stream struct {
	*servers.Program        // the last one that was started
	path             string // of the program
	config           string // path of its configuration
	folder, log      string
	logged           int64 // bytes that log had when the last one was started
	environ          []string
}

// startStorestream starts the product as anybody would: a program with a configuration file.
func startStorestream(s *screen, ports *ports, environ []string, program, folder,
	configuration string) (*stream, error) {
	config, log := filepath.Join(folder, "storestream.yaml"), filepath.Join(folder, "storestream.log")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		return nil, fmt.Errorf("write storestream's configuration: %w", err)
	}
	// Settings in the environment would win over the file, and lead it to another broker.
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, "STORESTREAM_")
	})
	stream := &stream{path: program, config: config, folder: folder, log: log, environ: environ}
	if err := stream.start(); err != nil {
		return nil, err
	}
	s.part("storestream", "http://"+ports.status.address(), "status page", ports.status.remark())
	s.part("  configuration", config)
	s.part("  log", log)
	return stream, nil
}

// start starts the program, the first time or after it has ended.
func (s *stream) start() error {
	s.logged = 0
	if info, err := os.Stat(s.log); err == nil { // there is none the first time
		s.logged = info.Size()
	}
	p, err := servers.StartProgram(servers.ProgramConfig{
		Name: "storestream", Path: s.path, Args: []string{"run", "--config", s.config}, Environ: s.environ,
		Dir: s.folder, Log: s.log, Patience: patience,
	})
	if err == nil {
		s.Program = p
	}
	return err
}

// failed says of a program that has ended that it failed. A program that was stopped ends in good order, as
// after SIGTERM, or by a signal.
func (s *stream) failed() bool { return s.ExitCode() > 0 && !s.dumped() }

// dumped says of a program that has ended whether SIGQUIT made it write its goroutines into the log. Go's
// runtime then exits with the status that panics and wrong usage have too.
func (s *stream) dumped() bool {
	text, err := os.ReadFile(s.log)
	return err == nil && int64(len(text)) > s.logged &&
		bytes.Contains(text[s.logged:], []byte("SIGQUIT: quit\n"))
}

// configuration is storestream's, as far as it differs from the defaults. Quoted strings are YAML's
// double-quoted ones, and need no further escapes.
func configuration(shop *storefake.Fake, db *database, ports *ports, registry string) string {
	var text strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	p("# Written by the demo. All other settings have their defaults, see config/example.yaml.")
	p("store:")
	p("  base_url: %q", shop.BaseURL())
	p("  max_requests_per_second: 50  # the stand-in bears it; a real service should get fewer")
	if dsn := db.readerDSN(); dsn != "" {
		p("postgres:")
		p("  dsn: %q", dsn)
	}
	p("kafka:")
	p("  brokers: [%q]", ports.broker.address())
	p("registry:")
	p("  url: %q", registry)
	p("resources:  # half a minute, the default, is long for a viewer")
	for _, name := range storefake.Names() {
		if table := name == storefake.Orders || name == storefake.OrderItems; db == nil || !table {
			p("  %s: {interval: 2s}", name)
		}
	}
	p("http:")
	p("  listen: %q", ports.status.address())
	p("  show_rows: true")
	p("log:")
	p("  format: console")
	return text.String()
}
