package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// panel is one pair of axes.
type panel struct {
	title, x, y string
	measure     string
	logX, logY  bool
}

// sheet is the plots of one part, side by side in one file.
type sheet struct {
	part   string
	panels []panel
}

func sheets() []sheet {
	rows, overlap, rate := "rows of the table", "rows changed within the overlap", "changes a second"
	return []sheet{
		{"rows", []panel{
			{"Time", rows, "seconds", "s", true, true},
			{"Peak memory", rows, "MiB", "MiB", true, true},
			{"Idle poll", rows, "CPU, milliseconds", "ms", true, false},
		}},
		{"days", []panel{
			{"Requests of a first load", "days of history", "requests", "requests", true, true},
			{"Time of a first load", "days of history", "seconds", "s", true, true},
		}},
		{"changes", []panel{
			{"CPU", rate, "% of a core", "% of a core", true, true},
			{"Rows read to find them", rate, "rows a second", "rows read a second", true, true},
			{"Commit to consumer", rate, "milliseconds", "ms", true, false},
		}},
		{"takeover", []panel{
			{"Start to ready", overlap, "seconds", "s", true, false},
			{"Peak memory", overlap, "MiB", "MiB", true, false},
		}},
		{"resources", []panel{
			{"CPU, nothing changes", "resources", "% of a core", "%", false, false},
			{"Resident memory", "resources", "MiB", "MiB", false, false},
			{"Connections to the broker", "resources", "connections", "connections", false, false},
		}},
		{"instances", []panel{
			{"CPU, nothing changes", "instances", "% of a core", "%", false, false},
			{"Resident memory", "instances", "MiB", "MiB", false, false},
			{"Connections to the broker", "instances", "connections", "connections", false, false},
		}},
	}
}

// drawAll draws the figures of a folder into it: a file for each part that has any.
func drawAll(dir string) error {
	f, err := readFigures(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sheets() {
		if !slices.ContainsFunc(f.points, func(p point) bool { return p.part == s.part }) {
			continue
		}
		svg, err := s.draw(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.part+".svg"), svg, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("draw %s: %w", s.part, err))
		}
	}
	return errors.Join(errs...)
}

// draw makes the file: on white, with words as words, so that it is small and can be searched.
func (s sheet) draw(f *figures) ([]byte, error) {
	const width, height = 4 * vg.Inch, 3.2 * vg.Inch
	canvas := vgsvg.New(vg.Length(len(s.panels))*width, height)
	area := draw.New(canvas)
	area.SetColor(color.White)
	area.Fill(area.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(s.panels), PadX: vg.Points(18), PadLeft: vg.Points(8), PadRight: vg.Points(16), PadTop: vg.Points(8), PadBottom: vg.Points(6)}
	for i, p := range s.panels {
		q, err := p.plot(f, s.part)
		if err != nil {
			return nil, err
		}
		q.Draw(tiles.At(area, i, 0))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// Where the fonts are not installed: Arial has the same widths.
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// inks are apart for eyes that see red and green alike, and dark enough for white.
var inks = []color.Color{color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{148, 80, 140, 255}}

func (p panel) plot(f *figures, part string) (*plot.Plot, error) {
	q := plot.New()
	q.Title.Text, q.X.Label.Text, q.Y.Label.Text = p.title, p.x, p.y
	q.Title.Padding = vg.Points(4)
	for _, style := range []*text.Style{&q.Title.TextStyle, &q.X.Label.TextStyle, &q.Y.Label.TextStyle, &q.X.Tick.Label, &q.Y.Tick.Label, &q.Legend.TextStyle} {
		style.Font.Variant = "Sans"
		style.Font.Size = vg.Points(10)
	}
	q.Title.TextStyle.Font.Size = vg.Points(12)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	q.Add(grid)
	names, all := f.of(part, p.measure)
	var xs, ys []float64
	for i, name := range names {
		points := make(plotter.XYs, 0, len(all[name]))
		for _, v := range all[name] {
			xs = append(xs, v.x)
			if v.y <= 0 && p.logY {
				continue // has no place there
			}
			points, ys = append(points, plotter.XY{X: p.place(v.x), Y: v.y}), append(ys, v.y)
		}
		if len(points) == 0 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		ink := inks[i%len(inks)]
		line.Color, line.Width, marks.Color, marks.Radius, marks.Shape = ink, vg.Points(1.6), ink, vg.Points(2.6), draw.CircleGlyph{}
		q.Add(line, marks)
		if len(names) > 1 {
			q.Legend.Add(name, line, marks)
		}
	}
	q.Legend.Padding = vg.Points(2)
	q.Legend.Top, q.Legend.Left, q.Legend.XOffs, q.Legend.YOffs = true, true, vg.Points(6), vg.Points(-4)
	q.X.Tick.Marker = p.places(xs)
	p.scale(q, len(names), ys)
	return q, nil
}

// place is where a value stands on the X axis: a logarithmic one shows nothing at 1, and has a 0 there.
func (p panel) place(x float64) float64 {
	if p.logX {
		return max(x, 1)
	}
	return x
}

// places marks just what was measured.
func (p panel) places(xs []float64) plot.ConstantTicks {
	slices.Sort(xs)
	var ticks plot.ConstantTicks
	for _, x := range slices.Compact(xs) {
		ticks = append(ticks, plot.Tick{Value: p.place(x), Label: short(x)})
	}
	return ticks
}

// scale begins linear axes at 0 and logarithmic ones at a decade, and leaves room above for the legend.
func (p panel) scale(q *plot.Plot, series int, ys []float64) {
	if p.logX {
		q.X.Scale = plot.LogScale{}
	}
	if len(ys) == 0 {
		return
	}
	room := float64(max(series, 1)-1) * .1
	if !p.logY {
		q.Y.Min, q.Y.Max = 0, slices.Max(ys)*(1.1+1.3*room)
		return
	}
	low, high := math.Floor(math.Log10(slices.Min(ys))), math.Ceil(math.Log10(slices.Max(ys))+.05)
	q.Y.Min, q.Y.Max = math.Pow(10, low), math.Pow(10, high+(high-low)*room*1.4)
	var ticks plot.ConstantTicks
	for d := low; d <= high; d++ {
		ticks = append(ticks, plot.Tick{Value: math.Pow(10, d), Label: short(math.Pow(10, d))})
	}
	q.Y.Scale, q.Y.Tick.Marker = plot.LogScale{}, ticks
}

// short is a number as axes have it: 20k, 1M.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', -1, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', -1, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
