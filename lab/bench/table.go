package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// series is one figure over the rounds.
type series []float64

func (s *series) add(v float64) { *s = append(*s, v) }

func (s series) median() float64 { return s.quantile(.5) }

// quantile is the nearest one that was measured, the mean of two for the median of an even number.
func (s series) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	if q == .5 && len(s)%2 == 0 {
		return (sorted[len(s)/2-1] + sorted[len(s)/2]) / 2
	}
	return sorted[min(int(math.Ceil(q*float64(len(s))))-1, len(s)-1)]
}

// table is the report.
type table struct{ rows []row }

type row struct{ what, target, median, spread string }

// add adds the median of the rounds, with the smallest and the largest.
func (t *table) add(what, target string, s series, format string) {
	r := row{what: what, target: target, median: fmt.Sprintf(format, s.median())}
	if len(s) > 1 {
		r.spread = fmt.Sprintf(format+" to "+format, slices.Min(s), slices.Max(s))
	}
	t.rows = append(t.rows, r)
}

// note adds a figure that is no median.
func (t *table) note(what, target, format string, args ...any) {
	t.rows = append(t.rows, row{what: what, target: target, median: fmt.Sprintf(format, args...)})
}

func (t *table) print(w io.Writer) {
	fmt.Fprintln(w, "| what | to reach | median | from, to |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.target, r.median, r.spread)
	}
}

// The lines of a document between which the report stands.
const (
	begin = "<!-- make bench writes from here"
	end   = "<!-- to here -->"
)

// replace puts text between the marks of a document.
func replace(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), begin)
	head, rest, found2 := strings.Cut(rest, "\n")
	_, after, found3 := strings.Cut(rest, end)
	if !found || !found2 || !found3 {
		return fmt.Errorf("%s: expected the lines %q and %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+head+"\n\n"+text+"\n"+end+after), 0o644)
}
