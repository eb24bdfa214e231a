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
		f := figure{what: string(of), target: "2", format: "%.1f ms", first: i == 0}
		report.add(of, nameBefore, f, 1234567.89)
		for _, v := range []float64{5000, 1, 3} {
			report.add(of, nameNow, f, v)
		}
	}
	written, err := place(string(text), report.parts("the machine"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range sections {
		line := "| " + string(of) + " | 2 | 1,234,567.9 ms | 3.0 ms (1.0 to 5,000.0) |\n"
		if n := strings.Count(written, line); n != 1 {
			t.Errorf("%q stands %d times in the document, expected once", line, n)
		}
		line = "| " + string(of) + " | 2 | 1,234,567.9 ms | 3.0 ms |\n"
		if begins := strings.Contains(written, line); begins != (of == sections[0]) {
			t.Errorf("the document begins with %q: %v", line, begins)
		}
	}
	again, err := place(written, report.parts("the machine"))
	if err != nil || again != written {
		t.Errorf("writing the same again changed the document: %v", err)
	}
}
