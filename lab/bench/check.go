package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// hot are the packages whose benchmarks are the hot paths without a server in them.
var hot = []string{"schemas", "rowset", "poller"}

const checkUsage = `check compares the hot paths of the working tree with those of another commit:
allocations, and the ratio of the two in each of many rounds that run one after the other. It fails where
something allocates more, or is slower by more than the tolerance in nearly every round.

  bin/bench check --against main --rounds 10

Flags:
`

// check is bench check.
func check(ctx context.Context, args []string, stdout io.Writer) (err error) {
	f := pflag.NewFlagSet("check", pflag.ContinueOnError)
	f.SetOutput(stdout)
	against := f.String("against", "main", "commit to compare with")
	rounds := f.Int("rounds", 10, "rounds")
	tolerance := f.Float64("tolerance", .1, "how much slower is still the same")
	f.Usage = func() { fmt.Fprint(stdout, checkUsage, f.FlagUsages()) }
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "storestream-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	theirs := filepath.Join(dir, "tree")
	if err := sources(ctx, *against, theirs); err != nil {
		return err
	}
	c := comparison{stdout: stdout, dir: dir, theirs: theirs, rounds: *rounds, tolerance: *tolerance}
	var slower []string
	fmt.Fprintf(stdout,
		"| benchmark | here | %s | ratio | from, to | allocations |\n|---|---|---|---|---|---|\n", *against)
	for _, pkg := range hot {
		worse, err := c.compare(ctx, pkg)
		if err != nil {
			return err
		}
		slower = append(slower, worse...)
	}
	if len(slower) > 0 {
		return fmt.Errorf("worse than %s: %s", *against, strings.Join(slower, ", "))
	}
	return nil
}

// packageDir is the folder of a package in a source tree. Older trees have it outside internal.
func packageDir(tree, pkg string) string {
	if dir := filepath.Join(tree, "internal", pkg); isDir(dir) {
		return dir
	}
	return filepath.Join(tree, pkg)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func shell(ctx context.Context, dir, line string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, text)
	}
	return nil
}

// comparison is a run of bench check.
type comparison struct {
	stdout    io.Writer
	dir       string // for binaries
	theirs    string // the other commit's sources
	rounds    int
	tolerance float64
}

// compare returns the benchmarks of one package that are worse here than there.
func (c *comparison) compare(ctx context.Context, pkg string) (worse []string, err error) {
	here, there := filepath.Join(c.dir, pkg+"-here"), filepath.Join(c.dir, pkg+"-there")
	ourDir, theirDir := packageDir(".", pkg), packageDir(c.theirs, pkg)
	err = errors.Join(shell(ctx, ourDir, fmt.Sprintf("go test -c -o %q .", here)),
		shell(ctx, theirDir, fmt.Sprintf("go test -c -o %q .", there)))
	if err != nil {
		return nil, err
	}
	ours, others := map[string]*benchmark{}, map[string]*benchmark{}
	for range c.rounds {
		if err := errors.Join(runAll(ctx, here, ourDir, ours), runAll(ctx, there, theirDir, others)); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		a, b := ours[name], others[name]
		if b == nil {
			fmt.Fprintf(c.stdout, "| %s | %.0f ns | new | | | %.0f |\n", name, a.wall.median(), a.allocs.median())
			continue
		}
		x, y := a.cpu, b.cpu // like with like
		if len(x) == 0 || len(y) == 0 {
			x, y = a.wall, b.wall
		}
		var ratio series
		for i := range min(len(x), len(y)) {
			ratio.add(x[i] / y[i])
		}
		fmt.Fprintf(c.stdout, "| %s | %.0f ns | %.0f ns | %.2f | %.2f to %.2f | %.0f, %.0f |\n", name, x.median(),
			y.median(),
			ratio.median(), slices.Min(ratio), slices.Max(ratio), a.allocs.median(), b.allocs.median())
		// Allocations that happen once weigh more in a benchmark that ran fewer times. The first quartile
		// means that three rounds in four agree.
		if a.allocs.median() > 1.2*b.allocs.median()+.5 || ratio.quantile(.25) > 1+c.tolerance {
			worse = append(worse, name)
		}
	}
	return worse, nil
}

// runAll runs every benchmark of a test binary once.
func runAll(ctx context.Context, binary, dir string, into map[string]*benchmark) error {
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", ".", "-test.benchmem",
		"-test.benchtime", "50ms")
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(binary), err, text)
	}
	for name, b := range parseBench(string(text)) {
		if into[name] == nil {
			into[name] = &benchmark{}
		}
		into[name].wall = append(into[name].wall, b.wall...)
		into[name].cpu = append(into[name].cpu, b.cpu...)
		into[name].allocs = append(into[name].allocs, b.allocs...)
	}
	return nil
}
