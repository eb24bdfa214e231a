package main

import (
	"slices"
	"strings"
)

// aligned returns rows as lines of aligned columns. Cells may be painted: the standard library's tabwriter
// counts the bytes of a style as width. right are the columns whose cells stand at the right.
func aligned(rows [][]string, right ...int) []string {
	widths := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-columnsOf(cell))
			if slices.Contains(right, i) {
				line.WriteString(space + cell + "  ")
			} else {
				line.WriteString(cell + space + "  ")
			}
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}
