package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// point is one measured figure of a plot.
type point struct {
	part     string // of the measurements: a file of plots
	measure  string // what and in which unit: one panel
	series   string // one line in it
	x, y     float64
	measured time.Time
	load     string // of the machine, over the minute before
	version  string // of storestream
	broker   string
}

// figures are the points of all plots. They are kept in a file, so that plots can be drawn again and one part measured anew.
type figures struct {
	points  []point
	version string
	broker  string
}

var figureColumns = []string{"part", "measure", "series", "x", "y", "measured", "load", "storestream", "broker"}

const figuresFile = "figures.csv"

// add adds a point that was measured just now.
func (f *figures) add(part, measure, series string, x, y float64) {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	f.points = append(f.points, point{part: part, measure: measure, series: series, x: x, y: y, measured: time.Now().UTC().Truncate(time.Second), load: load,
		version: f.version, broker: f.broker})
}

// of is the points of one panel, by series in the order in which they were first measured.
func (f *figures) of(part, measure string) (names []string, series map[string][]point) {
	series = map[string][]point{}
	for _, p := range f.points {
		if p.part != part || p.measure != measure {
			continue
		}
		if _, known := series[p.series]; !known {
			names = append(names, p.series)
		}
		series[p.series] = append(series[p.series], p)
	}
	for _, points := range series {
		slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	}
	return names, series
}

// readFigures reads a folder's figures; none where there is no file.
func readFigures(dir string) (*figures, error) {
	path := filepath.Join(dir, figuresFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &figures{}, nil
	}
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], figureColumns) {
		return nil, fmt.Errorf("%s: expected the columns %s", path, strings.Join(figureColumns, ","))
	}
	f := &figures{}
	for i, l := range lines[1:] {
		x, err1 := strconv.ParseFloat(l[3], 64)
		y, err2 := strconv.ParseFloat(l[4], 64)
		at, err3 := time.Parse(time.RFC3339, l[5])
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, i+2, err)
		}
		f.points = append(f.points, point{part: l[0], measure: l[1], series: l[2], x: x, y: y, measured: at, load: l[6], version: l[7], broker: l[8]})
	}
	return f, nil
}

// keep writes the figures: those of parts that f has, and the folder's own of the others.
func (f *figures) keep(dir string) error {
	old, err := readFigures(dir)
	if err != nil {
		return err
	}
	anew := map[string]bool{}
	for _, p := range f.points {
		anew[p.part] = true
	}
	all := slices.Concat(slices.DeleteFunc(old.points, func(p point) bool { return anew[p.part] }), f.points)
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.part, b.part) })
	var text strings.Builder
	w := csv.NewWriter(&text)
	lines := [][]string{figureColumns}
	for _, p := range all {
		lines = append(lines, []string{p.part, p.measure, p.series, strconv.FormatFloat(p.x, 'g', -1, 64), strconv.FormatFloat(p.y, 'g', 5, 64),
			p.measured.Format(time.RFC3339), p.load, p.version, p.broker})
	}
	if err := w.WriteAll(lines); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, figuresFile), []byte(text.String()), 0o644)
}
