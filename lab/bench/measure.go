package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// line is a part of the report that can be asked for alone.
type line struct {
	name    string
	measure func(context.Context, *stage, *table) error
}

func lines() []line {
	return []line{
		{"micro", microbenchmarks},
		{"firstload", firstLoads},
		{"apache", apacheLoads},
		{"rest", restLoads},
		{"openday", openDays},
		{"growing", growing},
		{"idle", idleness},
		{"latency", latencies},
		{"start", starts},
	}
}

func lineNames() []string {
	var names []string
	for _, l := range lines() {
		names = append(names, l.name)
	}
	return names
}

// measure measures what was asked for, prints the table, and writes it where it belongs. A line that fails
// does not take the others with it.
func measure(ctx context.Context, o options, stdout io.Writer) (err error) {
	s, err := open(ctx, o, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var t table
	var failed []error
	began := time.Now()
	for _, l := range lines() {
		if !o.wants(l.name) || ctx.Err() != nil {
			continue
		}
		if err := l.measure(ctx, s, &t); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", l.name, err))
			s.say("%s: %v", l.name, err)
		}
	}
	var text strings.Builder
	describe(ctx, &text, o, time.Since(began))
	t.print(&text)
	fmt.Fprint(stdout, "\n", text.String())
	if o.write != "" && len(failed) == 0 {
		return replace(o.write, text.String())
	}
	return errors.Join(failed...)
}

// describe says on what and of what the figures are.
func describe(ctx context.Context, w io.Writer, o options, took time.Duration) {
	model, memory := "unknown processor", ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if name, found := strings.CutPrefix(l, "model name"); found {
				model = strings.Trim(name, " \t:\n")
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kb); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kb+1<<19)>>20)
		}
	}
	revision, err := exec.CommandContext(context.WithoutCancel(ctx), "git", "describe", "--always",
		"--dirty").Output()
	if err != nil {
		revision = []byte("an unknown revision")
	}
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	fmt.Fprintf(w, "%s: %d x %s%s, %s, load %s at the end; storestream %s, %s; %d rounds, %s in all.\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model, memory,
		firstLine("/proc/sys/kernel/osrelease"),
		load, strings.TrimSpace(string(revision)), runtime.Version(), o.runs, took.Round(time.Second))
}
