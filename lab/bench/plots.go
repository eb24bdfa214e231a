package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// panel is one pair of axes and their quantities. Y begins at 0 unless it is logarithmic.
type panel struct {
	y, x       string
	logX, logY bool
}

// sheets are the files of plots, and the panels that stand side by side in each.
func sheets() map[string][]panel {
	rows, days, rate := "rows of the table", "days of history", "changes a second"
	return map[string][]panel{
		"rows": {{"first load, s", rows, true, true}, {"peak memory, MiB", rows, true, false},
			{"idle poll, ms of CPU", rows, true, false}},
		"days": {{"requests of a first load", days, true, true}, {"time of a first load, s", days, true, false}},
		"changes": {{"CPU, % of a core", rate, true, true}, {"rows read a change", rate, true, true},
			{"p99 of commit to consumer, ms", rate, true, false}},
	}
}

// plots are the points of all plots, each with its rounds.
type plots struct {
	names  map[[2]string][]string // the lines of each panel of a file, in the order in which they came
	points map[[3]string]map[float64]series
}

func newPlots() *plots {
	return &plots{names: map[[2]string][]string{}, points: map[[3]string]map[float64]series{}}
}

func (p *plots) add(file, panel, name string, x, y float64) {
	at := [3]string{file, panel, name}
	if p.points[at] == nil {
		p.points[at] = map[float64]series{}
		p.names[[2]string{file, panel}] = append(p.names[[2]string{file, panel}], name)
	}
	p.points[at][x] = append(p.points[at][x], y)
}

// write draws all files into a folder, and writes the figures themselves beside them.
func (p *plots) write(dir string) error {
	var text strings.Builder
	w := csv.NewWriter(&text)
	errs := []error{w.Write([]string{"file", "panel", "line", "x", "median", "smallest", "largest"})}
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }
	for _, file := range slices.Sorted(maps.Keys(sheets())) {
		for _, of := range sheets()[file] {
			for _, name := range p.names[[2]string{file, of.y}] {
				all := p.points[[3]string{file, of.y, name}]
				for _, x := range slices.Sorted(maps.Keys(all)) {
					errs = append(errs, w.Write([]string{file, of.y, name, exact(x), exact(all[x].median()),
						exact(slices.Min(all[x])), exact(slices.Max(all[x]))}))
				}
			}
		}
		svg := []byte(p.draw(file, sheets()[file]))
		errs = append(errs, os.WriteFile(filepath.Join(dir, file+".svg"), svg, 0o644))
	}
	w.Flush()
	errs = append(errs, os.WriteFile(filepath.Join(dir, "figures.csv"), []byte(text.String()), 0o644))
	return errors.Join(errs...)
}

// The size of a panel, and of the margins for its axes.
const (
	wide, high           = 320.0, 250.0
	left, right, top, at = 52.0, 14.0, 58.0, 212.0 // at is the height of the X axis
)

// inks are apart for eyes that see red and green alike, and dark enough for white.
var inks = []string{"#0072b2", "#d55e00", "#009e73", "#94508c"}

func (p *plots) draw(file string, panels []panel) string {
	var b strings.Builder
	width := wide * float64(len(panels))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" `+
		`font-family="Arial,Helvetica,sans-serif" font-size="10">`+"\n", width, high, width, high)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="#fff"/>`+"\n", width, high)
	for i, of := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%g 0)">`+"\n", wide*float64(i))
		p.drawPanel(&b, file, of)
		fmt.Fprintln(&b, "</g>")
	}
	return b.String() + "</svg>\n"
}

func (p *plots) drawPanel(b *strings.Builder, file string, of panel) {
	word := func(x, y float64, anchor, ink, text string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, ink, text)
	}
	names := p.names[[2]string{file, of.y}]
	var xs, ys []float64
	for _, name := range names {
		for x, s := range p.points[[3]string{file, of.y, name}] {
			xs, ys = append(xs, x), append(ys, s.median())
		}
	}
	word(left, 14, "start", "#000", of.y)
	if len(xs) == 0 {
		return
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	horizontal, vertical := newAxis(xs, of.logX, left, wide-right), newAxis(ys, of.logY, at, top)
	for _, y := range vertical.ticks {
		v := vertical.place(y)
		fmt.Fprintf(b, `<path d="M%g %.1fH%g" stroke="#ddd"/>`+"\n", left, v, wide-right)
		word(left-5, v+3, "end", "#000", short(y))
	}
	for _, x := range xs {
		word(horizontal.place(x), at+14, "middle", "#000", short(x))
	}
	word((left+wide-right)/2, at+30, "middle", "#000", of.x)
	for i, name := range names {
		ink := inks[i%len(inks)]
		word(left+float64(i%2)*125, 28+float64(i/2)*12, "start", ink, "● "+name)
		all := p.points[[3]string{file, of.y, name}]
		path := "M"
		for _, x := range slices.Sorted(maps.Keys(all)) {
			h, v := horizontal.place(x), vertical.place(all[x].median())
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.6" fill="%s"/>`+"\n", h, v, ink)
			path += fmt.Sprintf(" %.1f %.1f", h, v)
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"/>`+"\n", path, ink)
	}
}

// axis maps values to positions in a panel.
type axis struct {
	low, high, from, to float64 // values, in decades if it is logarithmic, and the places of the two
	decades             bool
	ticks               []float64
}

func newAxis(values []float64, logarithmic bool, from, to float64) *axis {
	a := &axis{from: from, to: to, decades: logarithmic}
	most := slices.Max(values)
	if most <= 0 {
		most = 1
	}
	if !logarithmic {
		step := math.Pow(10, math.Floor(math.Log10(most)))
		for most/step < 3 {
			step /= 2
		}
		for y := 0.0; len(a.ticks) == 0 || a.ticks[len(a.ticks)-1] < most; y += step {
			a.ticks = append(a.ticks, y)
		}
		a.high = a.ticks[len(a.ticks)-1]
		return a
	}
	least := most
	for _, v := range values {
		if v > 0 {
			least = min(least, v)
		}
	}
	a.low, a.high = math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	a.high = max(a.high, a.low+1)
	for d := a.low; d <= a.high; d++ {
		a.ticks = append(a.ticks, math.Pow(10, d))
	}
	return a
}

// place is the position of a value on the axis. A value of 0 or less goes to the low end of a logarithmic
// axis.
func (a *axis) place(v float64) float64 {
	if a.decades {
		v = math.Log10(max(v, math.Pow(10, a.low)))
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// count is a number of rows as names have it: 20k, 10M.
func count(n int) string { return short(float64(n)) }

// short is a number as axes have it: 20k, 1M.
func short(v float64) string {
	unit := ""
	switch {
	case v >= 1e6:
		v, unit = v/1e6, "M"
	case v >= 1e4:
		v, unit = v/1e3, "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + unit
}
