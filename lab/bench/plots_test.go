package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever was measured, also nothing and nothing but zeros, gives a drawing that is well-formed and in which
// no coordinate is missing.
func TestPlotsAreDrawnOfWhateverWasMeasured(t *testing.T) {
	for _, values := range [][]float64{nil, {0, 0}, {0, 1e-7, 3}, {1, 20_000_000}, {5, 5, 5}} {
		p := newPlots()
		for _, panels := range []string{"first load, s", "peak memory, MiB"} {
			for i, y := range values {
				p.add("rows", panels, nameNow, float64(i)*1000, y)
			}
		}
		dir := t.TempDir()
		if err := p.write(dir); err != nil {
			t.Fatal(err)
		}
		svg, err := os.ReadFile(filepath.Join(dir, "rows.svg"))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(svg))); err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) || strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%v: %v in\n%s", values, err, svg)
		}
	}
}
