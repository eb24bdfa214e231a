package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// microbenchmarks runs the Go benchmarks of decoding and encoding.
func microbenchmarks(ctx context.Context, s *stage, t *table) error {
	s.say("decoding and encoding")
	results, err := goBench(ctx, ".", "./schemas", "OrderFromPostgres|UserFromJSON", s.runs)
	if err != nil {
		return err
	}
	order, user := results["BenchmarkOrderFromPostgres"], results["BenchmarkUserFromJSON"]
	if order == nil || user == nil {
		return fmt.Errorf("go test -bench gave %d results: expected both benchmarks", len(results))
	}
	t.add("decode and encode an order from PostgreSQL's binary format, CPU", "<= 120 ns", order.cpu, "%.0f ns")
	t.add("... allocations", "0", order.allocs, "%.0f")
	t.add("decode and encode a user from JSON, CPU", "<= 2.5 us", user.cpu, "%.0f ns")
	t.add("... allocations", "0", user.allocs, "%.0f")
	return nil
}

// benchmark is what a Go benchmark gave, run after run: wall time, CPU time where it reports that,
// allocations.
type benchmark struct{ wall, cpu, allocs series }

var (
	resultLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	figure     = regexp.MustCompile(`([\d.]+) (\S+)`)
)

// goBench runs the benchmarks of a package in a source tree.
func goBench(ctx context.Context, dir, pkg, pattern string, count int) (map[string]*benchmark, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-count",
		strconv.Itoa(count), pkg)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench %s %s: %w\n%s", pattern, pkg, err, text)
	}
	return parseBench(string(text)), nil
}

func parseBench(text string) map[string]*benchmark {
	results := map[string]*benchmark{}
	for line := range strings.Lines(text) {
		m := resultLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		b := results[m[1]]
		if b == nil {
			b = &benchmark{}
			results[m[1]] = b
		}
		figures := map[string]float64{}
		for _, f := range figure.FindAllStringSubmatch(m[2], -1) {
			figures[f[2]], _ = strconv.ParseFloat(f[1], 64) // it matched
		}
		if ns, ok := figures["cpu-ns/op"]; ok {
			b.cpu.add(ns)
		}
		b.wall.add(figures["ns/op"])
		b.allocs.add(figures["allocs/op"])
	}
	return results
}
