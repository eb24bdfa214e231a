package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/storestream/storestream/internal/status"
)

// column is one of the table's. The last one takes what is left of the line.
type column struct {
	head  string
	right bool // numbers stand under each other by their last digit
	// narrow says that it stays on a terminal of fewer than wideTerminal columns.
	narrow bool
	least  int // width, so that the table does not jump while figures grow
	cell   func(r status.Resource, now time.Time) (string, style)
}

const wideTerminal = 96

var columns = []column{
	{"TOPIC", false, true, 0, func(r status.Resource, _ time.Time) (string, style) { return "store." + r.Name, bold }},
	{"SOURCE", false, false, 8, func(r status.Resource, _ time.Time) (string, style) { return r.Source, faint }},
	{"ROWS", true, true, 9, func(r status.Resource, _ time.Time) (string, style) { return count(r.Rows), normal }},
	{"ROWS/S", true, true, 6, func(r status.Resource, _ time.Time) (string, style) { return pace(r.RowsPerSecond), normal }},
	{"LAG", true, true, 7, func(r status.Resource, _ time.Time) (string, style) { return lag(r), normal }},
	{"SETTLED (UTC)", false, true, 19, func(r status.Resource, _ time.Time) (string, style) { return instant(r.Settled), normal }},
	{"STATE", false, true, 0, state},
}

func lag(r status.Resource) string {
	if r.LagSeconds == nil {
		return "-"
	}
	return duration(time.Duration(*r.LagSeconds * float64(time.Second)))
}

// state is what a resource does, in a word or two.
func state(r status.Resource, now time.Time) (string, style) {
	switch {
	case !r.Owned && r.Owner != "":
		return "polled by " + r.Owner, faint
	case !r.Owned:
		return "waiting for its turn", faint
	case r.Error != "":
		return "failing for " + duration(now.Sub(r.FailedSince)), red
	case r.Replaying:
		return "replaying", yellow
	case r.Held != "":
		return "held", yellow
	case r.State == status.Behind:
		return "behind", yellow
	case r.Passes > 0:
		return "following", green
	case r.Progress != nil && r.Progress.Fraction != nil:
		return fmt.Sprintf("first load %.0f %%", 100**r.Progress.Fraction), yellow
	case r.Progress != nil || r.Rows > 0:
		return "first load", yellow
	default:
		return r.Doing, yellow
	}
}

// table draws what is known of every resource in at most width columns, so that no line wraps.
func (s *screen) table(snapshot status.Snapshot, width int) []string {
	var shown []column
	for _, c := range columns {
		if c.narrow || width >= wideTerminal {
			shown = append(shown, c)
		}
	}
	widths := make([]int, len(shown))
	for i, c := range shown {
		widths[i] = max(len(c.head), c.least)
		for _, r := range snapshot.Resources {
			text, _ := c.cell(r, snapshot.Now)
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	lines := []string{s.row(shown, widths, width, func(c column) (string, style) { return c.head, faint })}
	for _, r := range snapshot.Resources {
		lines = append(lines, s.row(shown, widths, width, func(c column) (string, style) { return c.cell(r, snapshot.Now) }))
	}
	return lines
}

func (s *screen) row(shown []column, widths []int, room int, cell func(column) (string, style)) string {
	var line strings.Builder
	const gap = "  "
	for i, c := range shown {
		width := min(widths[i], room-len(gap))
		if width <= 0 {
			break
		}
		room -= len(gap) + width
		text, as := cell(c)
		text = cut(text, width)
		padding := strings.Repeat(" ", width-utf8.RuneCountInString(text))
		if text = s.paint(as, text); c.right {
			line.WriteString(gap + padding + text)
		} else {
			line.WriteString(gap + text + padding)
		}
	}
	return strings.TrimRight(line.String(), " ")
}

// cut shortens text to so many columns.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	return string([]rune(text)[:columns-1]) + "…"
}

// wrap breaks text at spaces into lines of so many columns; a longer word is cut.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = cut(word, columns)
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= columns:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
