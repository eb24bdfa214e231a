package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/storestream/storestream/lab/product"
)

// demoVariable, when set, makes this test binary the demo itself.
const demoVariable = "DEMO_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(demoVariable) != "" {
		main()
	}
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(status)
}

// small makes a demo that starts quickly and disturbs nobody.
var small = []string{"--orders", "200", "--users", "150", "--products", "80", "--free-ports"}

var built string

// storestream is the program, built once for all tests.
var storestream = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "demo-test-program-")
	if err != nil {
		return "", err
	}
	built = filepath.Join(folder, "storestream")
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	return built, product.BuildForTest(context.Background(), root, built)
})

func program(t *testing.T) string {
	t.Helper()
	path, err := storestream()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// isolated has all temporary folders made in one of the test's own, and returns it. It is short, because
// PostgreSQL's socket is in it, and open, because PostgreSQL may run as another user.
func isolated(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "demo-test-") //nolint:usetesting // TempDir is too long and closed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", folder)
	return folder
}

// running is a demo in this process.
type running struct {
	t         *testing.T
	lines     chan string // what it writes
	interrupt context.CancelFunc
	status    chan int
	stderr    strings.Builder // to be read once it has ended
	text      []string        // read from lines so far
}

// start runs the demo. At the end of the test it is interrupted, if it still runs.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	r := &running{t: t, lines: make(chan string, 10_000), interrupt: cancel, status: make(chan int, 1)}
	go func() {
		r.status <- run(ctx, append(append([]string{}, small...), args...), os.Environ(), writer, &r.stderr)
		_ = writer.Close() // never fails
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(r.lines)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			r.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
	})
	return r
}

// deadline bounds what a test waits for, on a machine that has a lot else to do.
const deadline = 5 * time.Minute

// until waits for a line that the demo writes.
func (r *running) until(part string) string {
	r.t.Helper()
	timeout := time.After(deadline)
	for {
		select {
		case line, open := <-r.lines:
			if !open {
				r.t.Fatalf("the demo ended without a line %q. It wrote:\n%s\n%s", part, strings.Join(r.text, "\n"),
					r.stderr.String())
			}
			r.text = append(r.text, line)
			if strings.Contains(line, part) {
				return line
			}
		case <-timeout:
			r.t.Fatalf("no line %q within %v. The demo wrote:\n%s", part, deadline, strings.Join(r.text, "\n"))
		}
	}
}

// end waits until the demo has ended and returns its exit status, stdout and stderr.
func (r *running) end() (status int, stdout, stderr string) {
	r.t.Helper()
	timeout := time.After(deadline)
	for {
		select {
		case line, open := <-r.lines:
			if !open {
				return <-r.status, strings.Join(r.text, "\n"), r.stderr.String()
			}
			r.text = append(r.text, line)
		case <-timeout:
			r.t.Fatalf("the demo did not end within %v. It wrote:\n%s", deadline, strings.Join(r.text, "\n"))
		}
	}
}

// configuration is the file that the demo says storestream runs with.
func (r *running) configuration() string {
	r.t.Helper()
	return lastWord(r.until("storestream.yaml"))
}

func lastWord(line string) string {
	words := strings.Fields(line)
	return words[len(words)-1]
}
