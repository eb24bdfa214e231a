package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// microbenchmarks runs the Go benchmarks of decoding and encoding, if the program has sources.
func microbenchmarks(ctx context.Context, r *round) error {
	if r.program.tree == "" {
		return nil
	}
	results, err := goBench(ctx, r.program.tree, "./schemas", "OrderFromPostgres|UserFromJSON")
	if err != nil {
		return err
	}
	order, user := results["BenchmarkOrderFromPostgres"], results["BenchmarkUserFromJSON"]
	if order == nil || user == nil {
		return fmt.Errorf("go test -bench gave %d results: expected both benchmarks", len(results))
	}
	what := "decode and encode an order from PostgreSQL's binary format: "
	r.add(figure{what: what + "CPU", target: "120 ns", format: "%.0f ns"}, order.cpu.median())
	r.add(figure{what: what + "allocations", target: "0", format: "%.0f"}, order.allocs.median())
	what = "decode and encode a user from JSON: "
	r.add(figure{what: what + "CPU", target: "2,500 ns", format: "%.0f ns"}, user.cpu.median())
	r.add(figure{what: what + "allocations", target: "0", format: "%.0f"}, user.allocs.median())
	return nil
}

// benchmark holds the results of a Go benchmark, run after run: wall time, allocations, and CPU time if it
// reports that.
type benchmark struct{ wall, cpu, allocs series }

var (
	resultLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	amount     = regexp.MustCompile(`([\d.]+) (\S+)`)
)

// goBench runs the benchmarks of a package in a source tree.
func goBench(ctx context.Context, dir, pkg, pattern string) (map[string]*benchmark, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem", pkg)
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
		for _, f := range amount.FindAllStringSubmatch(m[2], -1) {
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
