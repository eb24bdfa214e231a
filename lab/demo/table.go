package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// wideTerminal is from how many columns on the table has room for the source.
const wideTerminal = 96

// rates are rows a second by resource, since the first of the snapshots.
type rates map[string]float64

// ratesOf takes the snapshots of the last seconds, the oldest first.
func ratesOf(past []status.Snapshot) rates {
	all := rates{}
	if len(past) == 0 {
		return all
	}
	first, last := past[0], past[len(past)-1]
	before := map[string]int64{}
	for _, r := range first.Resources {
		before[r.Name] = r.Published
	}
	if seconds := last.Now.Sub(first.Now).Seconds(); seconds > 0 {
		for _, r := range last.Resources {
			all[r.Name] = float64(r.Published-before[r.Name]) / seconds
		}
	}
	return all
}

// table shows every resource in at most width columns, so that no line wraps.
func table(s status.Snapshot, pace rates, p paint, width int) []string {
	const margin = "  "
	if width <= len(margin) {
		return nil
	}
	rows := 2 // the column of this name; the source stands before it
	fit := func(cells ...string) []string { return cells }
	if width < wideTerminal {
		rows = 1
		fit = func(cells ...string) []string { return slices.Delete(cells, 1, 2) }
	}
	// The spaces keep the columns as wide as their later figures, so that the table does not jump.
	head := fit("TOPIC", "SOURCE", "PUBLISHED", "ROWS/S", "    LAG", "SETTLED (UTC)      ", "STATE")
	for i := range head {
		head[i] = p.as(bold, head[i])
	}
	all := [][]string{head}
	for _, r := range s.Resources {
		text, style := state(r, s.Now)
		all = append(all, fit(p.as(bold, "store."+r.Name), p.as(faint, r.Source), terminal.Count(r.Rows),
			perSecond(pace[r.Name]), lag(r), instant(r.Settled), p.as(style, text)))
	}
	lines := aligned(all, rows, rows+1, rows+2)
	for i := range lines {
		lines[i] = margin + strings.TrimRight(cut(lines[i], width-len(margin)), " ")
	}
	return lines
}

// plain is one line a resource, for an output that is not a terminal.
func plain(s status.Snapshot, pace rates, trouble []string) []string {
	now := s.Now
	if now.IsZero() {
		now = time.Now()
	}
	at := now.UTC().Format("15:04:05Z")
	var lines []string
	for _, r := range s.Resources {
		text, _ := state(r, s.Now)
		lines = append(lines, fmt.Sprintf("%s  %-17s %11s published  %7s rows/s  lag %-8s  settled %-19s  %s", at,
			"store."+r.Name, terminal.Count(r.Rows), perSecond(pace[r.Name]), lag(r), instant(r.Settled), text))
	}
	for _, text := range trouble {
		lines = append(lines, at+"  "+strings.ReplaceAll(text, "\n", " "))
	}
	return lines
}

// state is how a resource is, in a word or two.
func state(r health.Resource, now time.Time) (string, style) {
	text := strings.ReplaceAll(string(r.State), "_", " ")
	switch r.State {
	case health.Failing, health.Blocked:
		return text + " for " + terminal.Duration(now.Sub(r.Since)), red
	case health.Unowned, health.Stalled, health.Unreadable:
		return text, red
	case health.Following:
		return text, green
	}
	return text, yellow
}

func lag(r health.Resource) string {
	if r.LagSeconds == nil {
		return "-"
	}
	return terminal.Duration(time.Duration(*r.LagSeconds * float64(time.Second)))
}

// perSecond formats a rate of rows, such as 0, 0.4, 12 or 1,234 a second.
func perSecond(rows float64) string {
	if rows > 0 && rows < 9.95 {
		return strconv.FormatFloat(rows, 'f', 1, 64)
	}
	return terminal.Count(int64(rows + 0.5))
}

// instant formats a time in UTC to the second. nil is "not yet".
func instant(i *schemas.Instant) string {
	if i == nil {
		return "not yet"
	}
	return i.Time().Format(time.DateTime)
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
		case columnsOf(line)+1+columnsOf(word) <= columns:
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
