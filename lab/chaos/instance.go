package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
)

// instance is one storestream, whose process ends and starts again and again.
type instance struct {
	n      int
	path   string // of the program
	config string
	dir    string
	page   string // host:port of its status page
	// failed records a fault: an instance that ends by itself, or in another way than it should.
	failed func(error)

	mu sync.Mutex
	*life
}

// life is one process of an instance. expect belongs to the process: the next one may have started before
// ended judges this one.
type life struct {
	program *servers.Program
	expect  string // how it was asked to end, "" if it was not
}

const (
	byKill = "kill -9"
	byTerm = "SIGTERM"
	// lastOrder is how long storestream may take to finish its batches and leave.
	lastOrder = 60 * time.Second
)

func (i *instance) name() string { return fmt.Sprintf("instance-%d", i.n+1) }
func (i *instance) log() string  { return filepath.Join(i.dir, i.name()+".log") }

// start starts the process unless it runs.
func (i *instance) start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.life != nil && !servers.Closed(i.program.Exited()) {
		return nil
	}
	p, err := servers.StartProgram(servers.ProgramConfig{
		Name: i.name(), Path: i.path, Args: []string{"run", "--config", i.config,
			"--set", "http.listen=" + i.page}, Dir: i.dir, Log: i.log(),
		Patience: lastOrder,
		Environ:  environment(),
	})
	if err != nil {
		return err
	}
	l := &life{program: p}
	i.life = l
	go func() {
		<-p.Exited()
		i.ended(l)
	}()
	return nil
}

// environment is ours without storestream's settings, which would win over the file. A data race ends the
// process at once.
func environment() []string {
	kept := []string{"GORACE=halt_on_error=1 exitcode=66"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "STORESTREAM_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// ended judges how a process ended.
func (i *instance) ended(l *life) {
	i.mu.Lock()
	p, expect := l.program, l.expect
	i.mu.Unlock()
	switch {
	case expect == byKill:
	case expect == byTerm && p.ExitCode() == 0:
	case expect == byTerm:
		i.failed(fmt.Errorf("%s did not end in good order after SIGTERM: %w", i.name(), p.Ended()))
	default:
		i.failed(fmt.Errorf("%s ended unasked: %w", i.name(), p.Ended()))
	}
}

func (i *instance) expecting(what string) *servers.Program {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.life != nil && !servers.Closed(i.program.Exited()) {
		i.expect = what
		return i.program
	}
	return nil
}

// kill is kill -9.
func (i *instance) kill() error {
	if p := i.expecting(byKill); p != nil {
		return p.Kill()
	}
	return nil
}

// terminate asks it to end and waits until it has; ended judges how.
func (i *instance) terminate() {
	if p := i.expecting(byTerm); p != nil {
		i.heeds(p)
		_ = p.Stop() // that it had to be killed shows in its exit status
	}
}

// heeds waits until the process heeds signals, or has ended. One that has just been started does not yet, and
// SIGTERM ends it as kill -9 does. It heeds them before it opens its status page. One that never opens that
// is no longer waited for after lastOrder.
func (i *instance) heeds(p *servers.Program) {
	patience, tick := time.After(lastOrder), time.Tick(10*time.Millisecond)
	for {
		if conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", i.page); err == nil {
			conn.Close()
			return
		}
		select {
		case <-p.Exited():
			return
		case <-patience:
			return
		case <-tick:
		}
	}
}

func (i *instance) signal(s syscall.Signal) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.life == nil {
		return nil
	}
	return i.program.Signal(s)
}

// toTheEnd runs a command of the program that ends by itself, with its output in the instance's log.
func (i *instance) toTheEnd(ctx context.Context, args ...string) error {
	p, err := servers.StartProgram(servers.ProgramConfig{
		Name: "storestream " + strings.Join(args, " "), Path: i.path, Args: append(args, "--config", i.config),
		Dir: i.dir, Log: i.log(), Environ: environment(),
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
		return errors.Join(p.Kill(), context.Cause(ctx))
	}
	// 4: all is published but rows with dead letters. A letter without an id stays until a sweep, and the judge
	// looks at the others (judgeLetters).
	if p.ExitCode() != 0 && p.ExitCode() != 4 {
		return p.Ended()
	}
	return nil
}
