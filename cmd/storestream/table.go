package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/storestream/storestream/schemas"
)

// table is aligned columns for a person.
type table struct {
	rows  [][]string
	right map[int]bool // columns of numbers
}

// newTable is a table with a header, which stands out on a terminal.
func newTable(p paint, header ...string) *table {
	for i, name := range header {
		header[i] = p.as(bold, name)
	}
	return &table{rows: [][]string{header}, right: map[int]bool{}}
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// numbers has a column aligned at its right.
func (t *table) numbers(columns ...int) *table {
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

func (t *table) print(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	var text strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(pad(cell, widths[i], t.right[i]))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// printJSON writes v, indented.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// shortDuration is d in its two largest units: 4d3h, 2h10m, 3m5s, 42s, 0.8s.
func shortDuration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", max(0, d.Seconds()))
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// ago is how long before now an instant was, in words; "-" where it is not known.
func ago(i *schemas.Instant, now schemas.Instant) string {
	switch {
	case i == nil:
		return "-"
	case *i > now:
		return "in " + shortDuration(i.Sub(now))
	}
	return shortDuration(now.Sub(*i)) + " ago"
}

// grouped is n with its thousands apart: 1,234,567.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// plural is n things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(int64(n)) + " " + thing + "s"
}

// byteSize is n bytes in its unit.
func byteSize(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// instantText is i to the second, "-" where it is not known.
func instantText(i schemas.Instant) string {
	if i == schemas.MinInstant {
		return "-"
	}
	return i.Time().Format("2006-01-02T15:04:05Z")
}

// known is i, nil where it is not known: for JSON.
func known(i schemas.Instant) *schemas.Instant {
	if i == schemas.MinInstant {
		return nil
	}
	return &i
}
