package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// raceSettings are the race detector's, in storestream. By itself it would wait a second whenever a process
// ends: most of what a command takes.
const raceSettings = "GORACE=halt_on_error=1 exitcode=66 atexit_sleep_ms=0"

// process is a running storestream.
type process struct {
	t      *testing.T
	ask    func(addr, path string) (*http.Response, error) // its status server; nil: by http
	cmd    *exec.Cmd
	out    log
	exited chan struct{}
}

// log keeps what a process writes, and wakes up who waits for more.
type log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.text.Write(p)
}

// read is what was written so far, and a channel that is closed when there is more.
func (l *log) read() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.text.String(), l.changed
}

// patience is how long a test waits for what must happen. It judges nothing: shared machines stall, and where
// chance alone closes a day, as in some plans of the matrix, the first load takes one to two minutes.
const patience = 4 * time.Minute

// spawn starts storestream with the stack's configuration.
func (s *stack) spawn(args ...string) *process {
	s.t.Helper()
	return s.spawnOf(program, args...)
}

// spawnOf is spawn of another build.
func (s *stack) spawnOf(program string, args ...string) *process {
	s.t.Helper()
	return s.begin(exec.Command(program, append(args, "--config", s.config)...))
}

// begin starts a command that becomes storestream.
func (s *stack) begin(cmd *exec.Cmd) *process {
	s.t.Helper()
	p := &process{t: s.t, ask: s.ask, cmd: cmd, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = append(os.Environ(), append(cmd.Env, raceSettings)...)
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	s.t.Cleanup(func() {
		p.kill()
		text, _ := p.out.read()
		if strings.Contains(text, "WARNING: DATA RACE") {
			s.t.Error("data race in storestream:\n" + text)
		}
		for line := range strings.Lines(text) {
			if strings.Count(line, `"resource":"`) > 1 { // what reads logs keeps one of two, or refuses the line
				s.t.Error("a line of the log has a field twice: " + line)
				break
			}
		}
		if s.t.Failed() || os.Getenv("E2E_LOG") != "" {
			s.t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), tail(text, 60))
		}
	})
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop is SIGTERM, and waits for a clean exit.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		p.t.Fatalf("storestream exited with %d after SIGTERM", code)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatal("storestream did not exit")
		return -1
	}
}

// says waits until the process has written text, where only its output tells what a test waits for.
func (p *process) says(text string) {
	p.t.Helper()
	p.saysThat(strconv.Quote(text), func(said string) bool { return strings.Contains(said, text) })
}

// saysThat waits until what the process has written fits.
func (p *process) saysThat(what string, fits func(said string) bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		said, more := p.out.read()
		if fits(said) {
			return
		}
		select {
		case <-more:
		case <-p.exited:
			p.t.Fatalf("storestream exited (%d) without saying %s", p.cmd.ProcessState.ExitCode(), what)
		case <-deadline:
			p.t.Fatalf("storestream did not say %s", what)
		}
	}
}

// do runs a command to its end.
func (s *stack) do(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return runProgram(s.t, nil, append(args, "--config", s.config)...)
}

func runProgram(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), raceSettings), environ...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if os.Getenv("E2E_LOG") != "" {
		t.Logf("storestream %v: exit status %d after %s\n%s%s", args, cmd.ProcessState.ExitCode(),
			time.Since(began).Round(time.Millisecond), out.String(), errs.String())
	}
	if ctx.Err() != nil {
		t.Fatalf("storestream %v did not end within %s", args, patience)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// eventually tries until ok says true. It gives up on what a try says that began after patience was over:
// on a busy machine one may take as long as that, and tell of the time before what it is to show.
func eventually(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := time.Now().After(deadline)
		done, state := ok()
		if done {
			return
		}
		if last {
			t.Fatalf("%s: not within %s: %s", what, patience, state)
		}
		<-ticker.C
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{fmt.Sprintf("(%d lines before)", len(all)-lines)}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "\n")
}
