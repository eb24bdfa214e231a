package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestPlotsAreDrawnFromTheFiguresAlone(t *testing.T) {
	dir := t.TempDir()
	f := &figures{version: "v1", broker: "embedded"}
	for _, s := range sheets() {
		for _, p := range s.panels {
			for _, x := range []float64{0, 10, 100, 1e7} {
				f.add(s.part, p.measure, "one", x, x/3)
				f.add(s.part, p.measure, "two", x, x+1)
			}
		}
	}
	if err := f.keep(dir); err != nil {
		t.Fatal(err)
	}
	if err := drawAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, s := range sheets() {
		svg, err := os.ReadFile(filepath.Join(dir, s.part+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if len(svg) > 60<<10 {
			t.Errorf("%s.svg takes %d bytes", s.part, len(svg))
		}
		if !bytes.Contains(svg, []byte("fill:#FFFFFF")) {
			t.Errorf("%s.svg has no ground of its own: on a dark page nobody reads it", s.part)
		}
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s.svg: %v", s.part, err)
			}
		}
	}
}

func TestAPartMeasuredAnewReplacesItsFiguresAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	first := &figures{version: "v1"}
	first.add("rows", "s", "verify", 1000, 1.5)
	first.add("days", "s", "PostgreSQL", 10, 2.5)
	second := &figures{version: "v2"}
	second.add("rows", "s", "verify", 1000, .5)
	for _, f := range []*figures{first, second} {
		if err := f.keep(dir); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := readFigures(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.points) != 2 {
		t.Fatalf("%d points, want one of each part", len(kept.points))
	}
	if days, rows := kept.points[0], kept.points[1]; days != first.points[1] || rows != second.points[0] {
		t.Errorf("kept %+v and %+v", days, rows)
	}
}
