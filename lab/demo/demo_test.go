//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/schemas"
)

// processesIn are the processes that work in a folder or were given a path in it, by id.
func processesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, process := range all {
		where, _ := os.Readlink(filepath.Join(process, "cwd"))
		// of a process that has just ended there is neither
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if strings.HasPrefix(where, folder) || strings.Contains(string(line), folder) {
			found[filepath.Base(process)] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

// nothingLeft fails the test if a process or a file is left of a demo that has ended.
func nothingLeft(t *testing.T, folder string) {
	t.Helper()
	if left := processesIn(t, folder); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestRowsArriveInAllFiveTopicsAndAnInterruptLeavesNothingBehind(t *testing.T) {
	folder := isolated(t)
	t.Setenv("STORESTREAM_KAFKA__BROKERS", "127.0.0.1:1") // somebody's own deployment is no business of the demo
	r := start(t)
	r.until("building storestream")
	c, err := config.Load(config.Input{File: r.configuration()})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Postgres.DSN.IsSet() {
		t.Error("storestream got no PostgreSQL, though this machine has one")
	}
	consume(t, c, map[string]int{"orders": 200, "order_items": 200, "products": 80, "users": 150,
		"shipments": 200})
	for _, name := range schemas.Names() {
		r.until("store." + name)
	}
	if n := len(processesIn(t, folder)); n < 3 {
		t.Errorf("%d processes found, expected at least PostgreSQL, PgBouncer and storestream", n)
	}
	r.interrupt()
	status, stdout, stderr := r.end()
	if status != exitDone || !strings.Contains(stdout, "nothing is left behind") {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}

// Whoever wants to see what storestream says of a database that is down has no other way to stop this one,
// and none at all to start it again.
func TestPostgreSQLIsStoppedAndStartedByASignal(t *testing.T) {
	program, folder := program(t), isolated(t)
	r := start(t, "--storestream", program)
	if pid := lastWord(r.until("kill -USR1")); pid != strconv.Itoa(os.Getpid()) {
		t.Errorf("the signal is to be sent to %s, the demo is %d", pid, os.Getpid())
	}
	toggle := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
	}
	r.until("following")
	toggle()
	r.until("PostgreSQL is stopped, as you asked")
	r.until("no server for it")
	toggle()
	r.until("failing")
	for !strings.Contains(r.until("store.orders"), "following") { // until fails the test when it takes too long
		continue
	}
	r.interrupt()
	if status, stdout, stderr := r.end(); status != exitDone ||
		!strings.Contains(stdout, "nothing is left behind") {
		t.Errorf("exit status %d, stderr %q", status, stderr)
	}
	nothingLeft(t, folder)
}

func TestWithoutPostgresOrdersComeOverRESTAndTheDemoStopsByItself(t *testing.T) {
	program, folder := program(t), isolated(t)
	r := start(t, "--no-postgres", "--for", "1m", "--storestream", program)
	r.until("orders and order items go over REST too")
	c, err := config.Load(config.Input{File: r.configuration()})
	if err != nil {
		t.Fatal(err)
	}
	if source := c.Resources["orders"].Source; source != config.REST {
		t.Errorf("orders come from %s", source)
	}
	consume(t, c, map[string]int{"orders": 200, "order_items": 200, "products": 80, "users": 150,
		"shipments": 200})
	r.interrupt()
	r.end()
	nothingLeft(t, folder)

	r = start(t, "--no-postgres", "--for", "100ms", "--storestream", program)
	if status, stdout, stderr := r.end(); status != exitDone {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}

func TestAnInterruptWhileItStartsLeavesNothingBehind(t *testing.T) {
	program, folder := program(t), isolated(t)
	r := start(t, "--storestream", program)
	r.until("PostgreSQL")
	r.interrupt()
	status, stdout, stderr := r.end()
	if status != exitDone || strings.Contains(stdout, "Try in another terminal") {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}

func TestAStorestreamThatEndsEndsTheDemoWithItsLastWords(t *testing.T) {
	broken, folder := filepath.Join(t.TempDir(), "storestream"), isolated(t)
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho out of luck\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := start(t, "--no-postgres", "--storestream", broken).end()
	if status != exitFailed || !strings.Contains(stderr, "exit status 7") ||
		!strings.Contains(stderr, "out of luck") {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}

// Whoever stops storestream, kills it or takes a goroutine dump wants to see that it goes on where it was.
func TestAStorestreamThatIsStoppedOrKilledIsStartedAgain(t *testing.T) {
	program, folder := program(t), isolated(t)
	r := start(t, "--no-postgres", "--storestream", program)
	log := lastWord(r.until("storestream.log"))
	r.until("stop storestream")
	pid := lastWord(r.until("kill "))
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGQUIT} {
		r.until("following")
		process, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(process, signal); err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(r.until("is started again as process"))
		pid = strings.TrimRight(words[slices.Index(words, "process")+1], ":")
	}
	r.until("following")
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "\ngoroutine 1 ") {
		t.Errorf("no dump in the log (%v):\n%s", err, text)
	}
	r.interrupt()
	if status, stdout, stderr := r.end(); status != exitDone {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}

func TestWithoutJavaApacheKafkaIsRefusedAtOnceAndTheRemedyIsNamed(t *testing.T) {
	program, folder := program(t), isolated(t)
	t.Setenv("PATH", folder)
	t.Setenv("JAVA_HOME", "")
	status, stdout, stderr := start(t, "--kafka", "--storestream", program).end()
	if status != exitFailed || !strings.Contains(stderr, "no Java: install 17 or newer") ||
		!strings.Contains(stderr, "no Maven") ||
		!strings.Contains(stderr, "without --kafka") || strings.Contains(stdout, "PostgreSQL") {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}

func TestWhatTheDemoStartedDiesWithItWhenItIsKilled(t *testing.T) {
	program, folder := program(t), isolated(t)
	demo := exec.Command(os.Args[0], append(append([]string{}, small...), "--storestream", program)...)
	demo.Env = append(os.Environ(), demoVariable+"=1")
	var stderr bytes.Buffer // to be read once it has ended
	demo.Stderr = &stderr
	stdout, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan() && !strings.Contains(lines.Text(), "following"); {
		seen.WriteString(lines.Text() + "\n")
	}
	n := len(processesIn(t, folder))
	_ = demo.Process.Signal(syscall.SIGKILL) // it may have ended
	_ = demo.Wait()
	if n < 3 {
		t.Errorf("%d processes found, expected at least PostgreSQL, PgBouncer and storestream; "+
			"the demo wrote:\n%s%s", n, seen.String(), stderr.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(processesIn(t, folder)) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("left running: %v", processesIn(t, folder))
		}
	}
}
