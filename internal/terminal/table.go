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
	least map[int]int  // widths that do not shrink
}

const gap = "  "

// NewTable returns a table with a header, in bold if p has styles.
func NewTable(p Paint, header ...string) *Table {
	cells := make([]string, len(header))
	for i, name := range header {
		cells[i] = p.As(Bold, name)
	}
	return &Table{rows: [][]string{cells}, right: map[int]bool{}, least: map[int]int{}}
}

// Numbers aligns columns, counted from 0, at their right. It returns the table.
func (t *Table) Numbers(columns ...int) *Table {
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// AtLeast makes a column no narrower than width: a table that is drawn again and again does not jump while
// its figures grow. It returns the table.
func (t *Table) AtLeast(column, width int) *Table {
	t.least[column] = width
	return t
}

// Row adds a row. Cells may be painted.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Lines returns the table's lines, without spaces at their ends. If room is more than 0, wider lines are cut
// to it.
func (t *Table) Lines(room int) []string {
	widths := t.widths()
	lines := make([]string, 0, len(t.rows))
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(gap)
			}
			if t.right[i] {
				cell = space(cell, widths[i]) + cell
			}
			line.WriteString(Pad(cell, widths[i]))
		}
		text := strings.TrimRight(line.String(), " ")
		if room > 0 {
			text = strings.TrimRight(Cut(text, room), " ")
		}
		lines = append(lines, text)
	}
	return lines
}

func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, t.least[i])
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// Print writes the table.
func (t *Table) Print(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(t.Lines(0), "\n")+"\n")
	return err
}
