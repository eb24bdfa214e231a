package main

import (
	"encoding/csv"
	"os"
	"reflect"
	"slices"
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
		line := "| " + string(of) + " | 2 | 3.0 ms |\n"
		if begins := strings.Contains(written, line); begins != (of == sections[0]) {
			t.Errorf("the document begins with %q: %v", line, begins)
		}
		line = "| " + string(of) + " | 2 | 1,234,567.9 ms | 3.0 ms (1.0 to 5,000.0) |\n"
		if n := strings.Count(report.tables(of), line); n != 1 {
			t.Errorf("%q stands %d times in its table, expected once", line, n)
		}
	}
	again, err := place(written, report.parts("the machine"))
	if err != nil || again != written {
		t.Errorf("writing the same again changed the document: %v", err)
	}
}

// docs/plots/tables.csv has all figures of the run that wrote the document.
func TestAllTablesAreWrittenBesideTheDocument(t *testing.T) {
	report := table{programs: []string{nameBefore, nameNow}}
	for _, of := range slices.Backward(sections) {
		f := figure{what: string(of) + ", 1M rows", format: "%.0f ms"}
		report.add(of, nameBefore, f, 7)
		report.add(of, nameNow, f, 1)
		report.add(of, nameNow, f, 3)
	}
	text, err := report.csv()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	expected := [][]string{{"table", "what", "target", nameBefore, nameNow}}
	for _, of := range sections {
		expected = append(expected, []string{string(of), string(of) + ", 1M rows", "", "7 ms", "2 ms (1 to 3)"})
	}
	if !reflect.DeepEqual(lines, expected) {
		t.Errorf("got %q, expected %q", lines, expected)
	}
	committed, err := os.ReadFile("../../docs/plots/tables.csv")
	if err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(string(committed), head+"\n") {
		t.Errorf("docs/plots/tables.csv has not the columns %s", head)
	}
}
