package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
)

// child is a process that is measured.
type child struct {
	*servers.Program
	log   string
	began time.Time
	peak  atomic.Int64 // VmHWM in bytes, as of the last look
}

// spawn starts a program and watches its memory until it ends. The kernel's own maximum (ru_maxrss) would
// count the parent's memory at the fork too.
func spawn(dir, name, path string, environ []string, args ...string) (*child, error) {
	c := &child{log: filepath.Join(dir, name+".log"), began: time.Now()}
	var err error
	c.Program, err = servers.StartProgram(servers.ProgramConfig{Name: name, Path: path, Args: args,
		Environ: environ,
		Dir:     dir, Log: c.log})
	if err != nil {
		return nil, err
	}
	go func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-c.Exited():
				tick.Stop()
				return
			case <-tick.C:
				if kb, ok := statusKB(c.Pid(), "VmHWM:"); ok {
					c.peak.Store(kb << 10)
				}
			}
		}
	}()
	return c, nil
}

// statusKB is a line of /proc/PID/status.
func statusKB(pid int, key string) (int64, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, key); found {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb, err == nil
		}
	}
	return 0, false
}

// ready waits for the line that begins with "ready" and returns the rest of it.
func (c *child) ready(ctx context.Context) ([]string, error) {
	for {
		text, _ := os.ReadFile(c.log)
		if _, after, found := bytes.Cut(text, []byte("ready ")); found && bytes.IndexByte(after, '\n') >= 0 {
			line, _, _ := strings.Cut(string(after), "\n")
			return strings.Fields(line), nil
		}
		select {
		case <-c.Exited():
			return nil, c.Ended()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// done waits for the child to end by itself, with exit status 0.
func (c *child) done(ctx context.Context) error {
	select {
	case <-c.Exited():
		if c.ExitCode() != 0 {
			return c.Ended()
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clockTick is the unit of /proc/PID/stat on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// used is the CPU time of a running process and of all below it, also of those that have ended and were
// waited for. A child that is waited for during a look, after its parent was read, is missing from that look.
// So there are two, and the larger counts.
func used(pid int) time.Duration { return max(usedNow(pid), usedNow(pid)) }

func usedNow(pid int) time.Duration {
	children := map[int][]int{}
	ticks := map[int]int64{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range dirs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		id, parent, own, reaped := parseStat(string(text))
		children[parent] = append(children[parent], id)
		ticks[id] = own + reaped
	}
	var sum func(int) int64
	sum = func(id int) int64 {
		n := ticks[id]
		for _, c := range children[id] {
			n += sum(c)
		}
		return n
	}
	return time.Duration(sum(pid)) * clockTick
}

// parseStat reads pid, parent, and the ticks of a process and of its children that ended. The name, in
// parentheses, may hold anything.
func parseStat(text string) (pid, parent int, own, reaped int64) {
	head, rest, _ := strings.Cut(text, " (")
	f := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
	pid, _ = strconv.Atoi(head)
	parent, _ = strconv.Atoi(f[1])
	for i, into := range []*int64{&own, &own, &reaped, &reaped} { // utime stime cutime cstime
		n, _ := strconv.ParseInt(f[11+i], 10, 64)
		*into += n
	}
	return pid, parent, own, reaped
}
