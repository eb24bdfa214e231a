package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
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
	t.add("decode and encode an order from PostgreSQL's binary format", "<= 120 ns", order.nanos, "%.0f ns")
	t.add("... allocations", "0", order.allocs, "%.0f")
	t.add("decode and encode a user from JSON", "<= 2.5 us", user.nanos, "%.0f ns")
	t.add("... allocations", "0", user.allocs, "%.0f")
	return nil
}

// benchmark is what a Go benchmark gave, run after run.
type benchmark struct{ nanos, bytes, allocs series }

var resultLine = regexp.MustCompile(`(?m)^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:.*?\s([\d.]+) B/op\s+([\d.]+) allocs/op)?`)

// goBench runs the benchmarks of a package in a source tree.
func goBench(ctx context.Context, dir, pkg, pattern string, count int) (map[string]*benchmark, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-count", strconv.Itoa(count), pkg)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench %s %s: %w\n%s", pattern, pkg, err, text)
	}
	return parseBench(string(text)), nil
}

func parseBench(text string) map[string]*benchmark {
	results := map[string]*benchmark{}
	for _, m := range resultLine.FindAllStringSubmatch(text, -1) {
		b := results[m[1]]
		if b == nil {
			b = &benchmark{}
			results[m[1]] = b
		}
		for i, s := range []*series{&b.nanos, &b.bytes, &b.allocs} {
			if v, err := strconv.ParseFloat(m[2+i], 64); err == nil {
				s.add(v)
			}
		}
	}
	return results
}
