package terminal

import (
	"io"
	"strings"
)

// Table is aligned columns under a header. (The standard library's tabwriter counts the bytes of a style as
// width, and aligns all columns to the same side.)
type Table struct {
	rows  [][]string
	right map[int]bool // columns of numbers
}

// NewTable returns a table with a header, in bold if p has styles.
func NewTable(p Paint, header ...string) *Table {
	t := &Table{right: map[int]bool{}}
	for i := range header {
		header[i] = p.As(Bold, header[i])
	}
	t.Row(header...)
	return t
}

// Numbers aligns columns, counted from 0, at their right. It returns the table.
func (t *Table) Numbers(columns ...int) *Table {
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// Row adds a row. Cells may be painted.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Lines returns the table's lines, without spaces at their ends.
func (t *Table) Lines() []string {
	widths := map[int]int{}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	lines := make([]string, 0, len(t.rows))
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if t.right[i] {
				cell = strings.Repeat(" ", widths[i]-Width(cell)) + cell
			}
			line.WriteString(Pad(cell, widths[i]) + "  ")
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// Print writes the table.
func (t *Table) Print(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(t.Lines(), "\n")+"\n")
	return err
}
