package servers

import (
	"cmp"
	"syscall"
	"time"
)

// ProgramConfig says how to start a program of this project's own as a child.
type ProgramConfig struct {
	Name    string // for errors
	Path    string
	Args    []string
	Environ []string // the whole environment. Nil means this process's.
	Dir     string   // working folder
	Log     string   // file that gets its standard output and error, appended
	// Patience is how long Stop waits after SIGTERM before it kills. Zero means 10 s.
	Patience time.Duration
}

// Program is a running child in a process group of its own. On Linux it is killed when this process dies.
type Program struct {
	patience time.Duration
	process  *process
}

// StartProgram starts a program and returns at once. It does not wait until the program is ready.
func StartProgram(c ProgramConfig) (*Program, error) {
	p, err := start(command{
		name: c.Name, path: c.Path, args: c.Args, environ: c.Environ, dir: c.Dir, log: c.Log,
		lastWish: syscall.SIGKILL,
	})
	if err != nil {
		return nil, err
	}
	return &Program{patience: cmp.Or(c.Patience, stopPatience), process: p}, nil
}

// Exited is closed once the program has ended, however that was.
func (p *Program) Exited() <-chan struct{} { return p.process.exited }

// Ended describes a program that has exited by itself: its exit status and its last words. Call it only after
// Exited.
func (p *Program) Ended() error { return p.process.ended() }

// Stop asks the program to end (SIGTERM), kills it when its patience is over, and returns when it is gone. A
// second Stop does nothing.
func (p *Program) Stop() error { return p.process.stop(p.patience, syscall.SIGTERM) }

// Signal sends the program a signal: SIGSTOP and SIGCONT freeze and wake it. One that has ended already is no
// error.
func (p *Program) Signal(s syscall.Signal) error { return p.process.signal(s) }

// Kill ends the program as kill -9 would, and returns when it is gone.
func (p *Program) Kill() error { return p.process.stop(0, syscall.SIGKILL) }

// ExitCode returns its exit status, or -1 if a signal ended it. Call it only after Exited.
func (p *Program) ExitCode() int { return p.process.cmd.ProcessState.ExitCode() }

// Pid returns the program's process id, for measurements.
func (p *Program) Pid() int { return p.process.cmd.Process.Pid }

// CPU returns the program's CPU time, user and system. Call it only after Exited.
func (p *Program) CPU() time.Duration {
	state := p.process.cmd.ProcessState
	return state.UserTime() + state.SystemTime()
}

// Closed reports, without waiting, whether c is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
