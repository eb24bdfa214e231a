//go:build consumers

package consumers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// child is a running program. It ends with the test.
type child struct {
	name   string
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// launch starts a program in a process group of its own, with its output in a file.
func launch(t *testing.T, name string, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{name: name, cmd: cmd, log: filepath.Join(t.TempDir(), "log"), exited: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(c.exited)
	}()
	t.Cleanup(func() {
		c.kill()
		if t.Failed() || os.Getenv("CONSUMERS_LOG") != "" {
			t.Logf("%s:\n%s", name, tail(c.output(t), 40))
		}
	})
	return c
}

// kill is kill -9 of the program and what it has started. Of one that has ended already it does nothing.
func (c *child) kill() {
	select {
	case <-c.exited:
	default:
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.exited
	}
}

// ended says whether the program has ended by itself.
func (c *child) ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

func (c *child) output(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
