package main

import (
	"os"
	"strings"
	"testing"
)

// A run takes hours, and ends with writing into this document.
func TestTheDocumentHasAPlaceForEachPart(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	report := table{programs: []string{nameBefore, nameNow}}
	for i, of := range sections {
		f := figure{what: string(of), target: "2", format: "%.1f ms", ten: i == 0}
		report.add(of, nameBefore, f, 7)
		for _, v := range []float64{5, 1, 3} {
			report.add(of, nameNow, f, v)
		}
	}
	written, err := place(string(text), report.parts("the machine"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range sections {
		line, want := "| "+string(of)+" | 2 | 7.0 ms | 3.0 ms (1.0 to 5.0) |\n", 1
		if of == sections[0] {
			want = 2 // it is one of the ten too
		}
		if n := strings.Count(written, line); n != want {
			t.Errorf("%q stands %d times in the document, expected %d", line, n, want)
		}
	}
	again, err := place(written, report.parts("the machine"))
	if err != nil || again != written {
		t.Errorf("writing the same again changed the document: %v", err)
	}
}
