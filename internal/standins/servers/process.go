package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// command describes the process to start.
type command struct {
	name     string // for errors
	path     string
	args     []string
	environ  []string       // nil inherits this process's
	dir      string         // working folder
	log      string         // file that gets its standard output and error, appended
	as       *account       // nil is this process's user
	lastWish syscall.Signal // signal to the child when this process dies, if the kernel supports that
}

// process is a running child. Its goroutine ends when the child does.
type process struct {
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed once the child is gone and waited for
}

// start runs c. The child gets its own process group, so that Ctrl-C on the terminal reaches it only through
// its owner, in the owner's order.
//
// The kernel sends a child its last wish (Pdeathsig) when the *thread* that forked it ends, not the process.
// So the goroutine that forks locks its thread and stays there until the child is gone. Otherwise another
// goroutine could come to that thread later, lock it and return, which ends the thread and the child with it.
func start(c command) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", c.name, err)
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = c.environ
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.as.uid, Gid: c.as.gid}
	}
	tieToOwner(cmd.SysProcAttr, c.lastWish)
	p := &process{name: c.name, log: c.log, cmd: cmd, exited: make(chan struct{})}

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	return p, nil
}

// startReady starts c and returns once probe succeeds. It ends a process that is not ready when its patience
// is over.
func startReady(
	ctx context.Context, c command, patience time.Duration, probe func(context.Context) error,
) (*process, error) {
	p, err := start(c)
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx, patience, probe); err != nil {
		_ = p.stop(stopPatience, c.lastWish)
		return nil, err
	}
	return p, nil
}

// run runs c to its end and returns an error that quotes its last output if it did not succeed. It kills c
// when ctx ends.
func run(ctx context.Context, c command) error {
	p, err := start(c)
	if err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		_ = p.stop(0)
		return context.Cause(ctx)
	}
	if p.cmd.ProcessState.Success() {
		return nil
	}
	return p.ended()
}

// ended describes a process that has exited though it should not have.
func (p *process) ended() error {
	words := tail(p.log, 12)
	reason := p.cmd.ProcessState.String()
	if full := syscall.ENOSPC.Error(); strings.Contains(strings.ToLower(words), full) {
		reason += ", " + full // which many words of others may follow
	}
	return fmt.Errorf("%s ended (%s); its last words, from %s:\n%s", p.name, reason, p.log, words)
}

// ready waits until probe succeeds and the process is still there: otherwise another program's server
// answered.
func (p *process) ready(ctx context.Context, patience time.Duration,
	probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := probe(ctx)
		if err == nil && p.alive() {
			return nil
		}
		select {
		case <-p.exited:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %w (log: %s)", p.name, patience, err, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// alive says whether the child is still there.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop sends the signals one after the other, each with patience to take effect, then SIGKILL, and returns
// when the child is gone. A process that has already ended is no error.
func (p *process) stop(patience time.Duration, signals ...syscall.Signal) error {
	for _, s := range signals {
		if err := p.signal(s); err != nil {
			return err
		}
		timer := time.NewTimer(patience)
		select {
		case <-p.exited:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

func (p *process) signal(s syscall.Signal) error {
	err := p.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s the signal %v: %w", p.name, s, err)
	}
	return nil
}

// tail is the last lines of a text file, or why they cannot be read.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
