package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/wait"
)

// machine is the environment that the figures depend on.
type machine struct {
	began time.Time
	model string // processors and memory
	load  string // load average over the minute before
	// others are programs that used more than a twentieth of a core before anything was measured, by name only.
	others []string
}

// lookAround measures for two seconds how busy the machine is without us.
func lookAround(ctx context.Context) (*machine, error) {
	m := &machine{began: time.Now().UTC(), model: model()}
	m.load, _, _ = strings.Cut(firstLine("/proc/loadavg"), " ")
	before := allUsed()
	const watched = 2 * time.Second
	if err := wait.For(ctx, watched); err != nil {
		return nil, err
	}
	shares := map[string]time.Duration{}
	for pid, p := range allUsed() {
		if pid != os.Getpid() {
			shares[p.name] += p.spent - before[pid].spent
		}
	}
	for name, spent := range shares {
		if share := 100 * spent / watched; share >= 5 {
			m.others = append(m.others, fmt.Sprintf("%s %d %%", name, share))
		}
	}
	slices.Sort(m.others)
	return m, nil
}

func model() string {
	name, memory := "unknown processor", ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if found, ok := strings.CutPrefix(l, "model name"); ok {
				name = strings.Trim(found, " \t:\n")
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kb); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kb+1<<19)>>20)
		}
	}
	return fmt.Sprintf("%d x %s%s, %s", runtime.NumCPU(), name, memory,
		firstLine("/proc/sys/kernel/osrelease"))
}

// process is the CPU time of one process so far, without its children.
type process struct {
	name  string
	spent time.Duration
}

// allUsed is every process, by its id.
func allUsed() map[int]process {
	all := map[int]process{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, _, own, _ := parseStat(string(text))
		_, name, _ := strings.Cut(string(text), "(")
		name = name[:max(strings.LastIndexByte(name, ')'), 0)]
		all[pid] = process{name, time.Duration(own) * clockTick}
	}
	return all
}

// describe names the machine and the programs of the figures, and says whether the machine was quiet.
func (m *machine) describe(s *stage) string {
	quiet := "The machine was quiet at the start"
	if len(m.others) > 0 {
		quiet = "**The machine was not quiet**: at the start others used of a core " + strings.Join(m.others, ", ")
	}
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	var text strings.Builder
	fmt.Fprintf(&text, "%s to %s UTC, %s, %s.\n%s; load %s at the start, %s at the end.\n",
		m.began.Format("2006-01-02 15:04"), time.Now().UTC().Format("15:04"), m.model, runtime.Version(), quiet,
		m.load, load)
	for _, p := range s.programs {
		fmt.Fprintf(&text, "Column \"%s\": storestream %s.\n", p.name, p.revision)
	}
	fmt.Fprintf(&text, "%d rounds, or fewer if one takes minutes. In each round all programs run, "+
		"one after the other.\n", s.runs)
	for _, key := range slices.Sorted(maps.Keys(s.set)) {
		fmt.Fprintf(&text, "%s is %s, if the version knows it.\n", key, s.set[key])
	}
	for _, failed := range s.failures {
		fmt.Fprintf(&text, "Not measured: %s.\n", failed)
	}
	return text.String()
}

// revisionOf is git's description of a commit, or of the clone as it stands if rev is empty.
func revisionOf(ctx context.Context, rev string) string {
	args := []string{"describe", "--always", "--tags"}
	if rev == "" {
		args = append(args, "--dirty")
	} else {
		args = append(args, rev)
	}
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "of an unknown revision"
	}
	return strings.TrimSpace(string(out))
}
