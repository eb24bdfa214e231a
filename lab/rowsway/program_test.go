package rowsway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/storestream/storestream/lab/product"
)

// build compiles the program with counters in its code and with testdata/probe.go in its package config. That
// package has no part in a row's way, and so needs no counters. Without inlining, stacks show every call.
func build(t *testing.T, root, dir string) (path string) {
	t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "config/probe.go"): filepath.Join(root, "lab/rowsway/testdata/probe.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "storestream")
	err = product.BuildIn(t.Context(), root, path, []string{"CGO_ENABLED=0"}, "-overlay", file,
		"-gcflags="+module+"/...=-l", "-cover", "-covermode=atomic",
		"-coverpkg=./poller/...,./producer/...,./schemas/...,./internal/...,./cmd/storestream/...")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program is a storestream with the probe in it.
type program struct {
	t     *testing.T
	dir   string
	probe http.Client
}

func newProgram(t *testing.T) *program {
	t.Helper()
	p := &program{t: t, dir: t.TempDir()}
	p.probe.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket())
	}}
	return p
}

func (p *program) socket() string { return filepath.Join(p.dir, "probe") }

// start starts the program that lies at path. The test's end kills it.
func (p *program) start(path, configuration string) {
	p.t.Helper()
	file := filepath.Join(p.dir, "storestream.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, "run", "--config", file)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "ROWSWAY_SOCKET="+p.socket(), "GOCOVERDIR="+p.dir,
		"GODEBUG=tracebackancestors=10")
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("storestream says:\n%s", &said)
		}
	})
}

// ask asks the probe. It may be called from any goroutine.
func (p *program) ask(path string) string {
	answer, err := p.probe.Get("http://probe" + path)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Errorf("the probe answers %s with %s: %s, %v", path, answer.Status, text, err)
	}
	return string(text)
}

// clear sets the counters to zero.
func (p *program) clear() { p.ask("/clear") }

// counters writes the counters into a new folder.
func (p *program) counters() (dir string) {
	dir, err := os.MkdirTemp(p.dir, "")
	if err != nil {
		p.t.Error(err)
		return ""
	}
	p.ask("/counters?" + url.Values{"dir": {dir}}.Encode())
	return dir
}

// stacks returns the stacks of all goroutines.
func (p *program) stacks() string { return p.ask("/stacks") }

// configuration is of a program that reads orders from source and nothing else.
func configuration(source, service, dsn, broker, registry string) string {
	return fmt.Sprintf(`
store: {base_url: %q, max_requests_per_second: 1000}
postgres: {dsn: %q}
kafka: {brokers: [%s], compression: none}
registry: {url: %q}
http: {listen: 127.0.0.1:0}
sweep: {interval: 0s}
resources:
  orders: {source: %s, interval: 200ms, overlap: 2s}
  order_items: {enabled: false}
  products: {enabled: false}
  users: {enabled: false}
  shipments: {enabled: false}
`, service, dsn, broker, registry, source)
}
