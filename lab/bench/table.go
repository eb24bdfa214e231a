package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/storestream/storestream/internal/terminal"
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

// cell is the median. With spread it adds the smallest and the largest, if there are several values.
func (s series) cell(format string, spread bool) string {
	if len(s) == 0 {
		return ""
	}
	text := number(format, s.median())
	if bare, _, _ := strings.Cut(format, " "); spread && len(s) > 1 {
		text += " (" + number(bare, slices.Min(s)) + " to " + number(bare, slices.Max(s)) + ")"
	}
	return text
}

// number is v in a format that begins with it, its thousands apart.
func number(format string, v float64) string {
	text := fmt.Sprintf(format, v)
	digits := strings.IndexFunc(text+" ", func(r rune) bool { return r < '0' || r > '9' })
	if n, err := strconv.Atoi(text[:digits]); err == nil {
		return terminal.Count(n) + text[digits:]
	}
	return text // negative, or not measured
}

// figure describes a line of the table.
type figure struct {
	what   string // unique among figures
	target string // "" if it has no target
	format string // a verb, and the unit behind a space
	first  bool   // one of the five that the document begins with
}

// section is one of the small tables.
type section string

// The sections, in the order in which they are printed.
const (
	loading   section = "First load"
	overREST  section = "REST"
	following section = "Following"
	holding   section = "Memory and sweeps"
	starting  section = "Starting and taking over"
)

var sections = []section{loading, overREST, following, holding, starting}

// row is a figure as it was measured, by the name of the program.
type row struct {
	figure
	section section
	by      map[string]series
}

// table is the report.
type table struct {
	programs []string // names, in the order of their columns
	rows     []*row
}

// add adds a figure from one round of a program.
func (t *table) add(of section, program string, f figure, v float64) {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.what == f.what })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &row{figure: f, section: of, by: map[string]series{}})
	}
	t.rows[i].by[program] = append(t.rows[i].by[program], v)
}

// tables is the section's table with the spread of each figure, or "" if nothing of it was measured.
func (t *table) tables(of section) string {
	return t.markdown(t.programs, true, func(r *row) bool { return r.section == of })
}

// markdown is a table of the wanted rows, or "" if there are none. For spread see series.cell.
func (t *table) markdown(columns []string, spread bool, wanted func(*row) bool) string {
	var b strings.Builder
	head := "| what | target | " + strings.Join(columns, " | ") + " |\n|---|---|" +
		strings.Repeat("---|", len(columns)) + "\n"
	for _, r := range t.rows {
		if !wanted(r) {
			continue
		}
		b.WriteString(head)
		head = ""
		fmt.Fprintf(&b, "| %s | %s |", r.what, r.target)
		for _, name := range columns {
			fmt.Fprintf(&b, " %s |", r.by[name].cell(r.format, spread))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// csv is every figure with its spread, as docs/plots/tables.csv has them.
func (t *table) csv() (string, error) {
	var text strings.Builder
	w := csv.NewWriter(&text)
	errs := []error{w.Write(append([]string{"table", "what", "target"}, t.programs...))}
	for _, of := range sections {
		for _, r := range t.rows {
			if r.section != of {
				continue
			}
			line := []string{string(of), r.what, r.target}
			for _, name := range t.programs {
				line = append(line, r.by[name].cell(r.format, true))
			}
			errs = append(errs, w.Write(line))
		}
	}
	w.Flush()
	return text.String(), errors.Join(errs...)
}

// parts are the generated parts of the document, by the names of its marks. The five figures are those of
// this version alone.
func (t *table) parts(head string) map[string]string {
	return map[string]string{
		"head":         head,
		"five figures": t.markdown([]string{nameNow}, false, func(r *row) bool { return r.first }),
	}
}

// The lines of a document between which a part of the report stands; behind begin comes the part's name.
const (
	begin = "<!-- make bench writes from here: "
	end   = "<!-- to here -->"
)

// replace puts each part between its marks in a document.
func replace(path string, parts map[string]string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := place(string(old), parts)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// place is a document's text with each part between its marks.
func place(text string, parts map[string]string) (string, error) {
	for name, part := range parts {
		mark := begin + name + " -->\n"
		before, rest, found := strings.Cut(text, mark)
		_, after, found2 := strings.Cut(rest, end)
		if !found || !found2 {
			return "", fmt.Errorf("expected the lines %q and %q", strings.TrimSpace(mark), end)
		}
		text = before + mark + "\n" + part + "\n" + end + after
	}
	return text, nil
}
