package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/storestream/storestream/lab/product"
)

// cgroup is a control group of Linux that bounds the memory of the processes in it, as a container's does:
// pages of files and of sockets count. Who needs more is killed.
type cgroup struct {
	t   *testing.T
	dir string
	// peak is the file that says the most bytes that the group had at once, or what it has now where the kernel
	// does not know that. kills says, behind oom_kill, how
	// many processes were killed for want of memory.
	peak, kills string
}

const cgroups = "/sys/fs/cgroup"

// newCgroup makes a group of at most leastContainer, without swap. Where groups cannot be made the test is
// skipped, or fails if E2E_CGROUP=required says that they can: CI would be green without any of these tests.
func newCgroup(t *testing.T) *cgroup {
	t.Helper()
	limit := strconv.Itoa(leastContainer)
	g := &cgroup{t: t}
	giveUp := t.Skipf
	if os.Getenv("E2E_CGROUP") == "required" {
		giveUp = t.Fatalf
	}
	var limits [][2]string // file and value, in order
	if _, err := os.Stat(cgroups + "/cgroup.controllers"); err == nil {
		// The children of the root get the controller where they have not got it yet. Where this is a container's
		// own tree it fails, because there are processes in its root.
		if err := set(cgroups+"/cgroup.subtree_control", "+memory"); err != nil {
			giveUp("no control group here can bound memory (run the tests as root, outside of containers): %v", err)
		}
		g.dir, g.peak, g.kills = cgroups, "memory.peak", "memory.events"
		limits = [][2]string{{"memory.swap.max", "0"}, {"memory.max", limit}}
	} else { // version 1
		g.dir, g.peak, g.kills = cgroups+"/memory", "memory.max_usage_in_bytes", "memory.oom_control"
		limits = [][2]string{{"memory.limit_in_bytes", limit}, {"memory.memsw.limit_in_bytes", limit}}
	}
	dir, err := os.MkdirTemp(g.dir, "storestream-e2e-") //nolint:usetesting // a folder there is a group
	if err != nil {
		giveUp("no control group can be made here, so nothing bounds memory (run the tests as root, on Linux): %v",
			err)
	}
	g.dir = dir
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	for _, l := range limits {
		err := set(filepath.Join(dir, l[0]), l[1])
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(l[0], "sw") { // a kernel that does not count swap
			continue
		}
		if err != nil {
			giveUp("this machine's control groups do not bound memory: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, g.peak)); err != nil { // version 2 before Linux 5.19
		g.peak = "memory.current"
	}
	return g
}

// set writes to a file of a group. os.WriteFile would make one that is not there, and the kernel refuses that
// as if it were a matter of rights.
func set(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// read is a file of the group.
func (g *cgroup) read(name string) string {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

var oomKill = regexp.MustCompile(`(?m)^oom_kill (\d+)$`)

// killed is how many processes of the group were killed for want of memory.
func (g *cgroup) killed() string {
	g.t.Helper()
	found := oomKill.FindStringSubmatch(g.read(g.kills))
	if found == nil {
		g.t.Fatalf("%s does not say oom_kill:\n%s", g.kills, g.read(g.kills))
	}
	return found[1]
}

// mostBytes is the most that the group had at once.
func (g *cgroup) mostBytes() int64 {
	g.t.Helper()
	n, err := strconv.ParseInt(g.read(g.peak), 10, 64)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// command is a command whose process is in the group from its first instruction on.
func (g *cgroup) command(program string, args ...string) *exec.Cmd {
	const enter = `echo $$ >"$0" && exec "$@"`
	return exec.Command("sh", append([]string{"-c", enter, filepath.Join(g.dir, "cgroup.procs"), program},
		args...)...)
}

// released is storestream as it is released: the race detector takes several times the memory.
var released = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "storestream-released")
	if err := product.Build(context.Background(), path, []string{"CGO_ENABLED=0"}, "-trimpath",
		"-ldflags=-s -w"); err != nil {
		return "", fmt.Errorf("build storestream: %w", err)
	}
	return path, nil
})
