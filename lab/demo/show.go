package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/status"
)

// show draws the table anew on a terminal, and writes a plain line for each resource elsewhere.
func (d *demo) show(v *view) {
	trouble := v.trouble()
	if text := d.databaseState(); text != "" {
		trouble = append([]string{text}, trouble...)
	}
	if text := d.trafficTrouble(); text != "" {
		trouble = append(trouble, text)
	}
	if d.screen.terminal == nil {
		d.screen.draw(plain(v.snapshot, trouble))
		return
	}
	width, height := d.screen.size()
	lines := d.screen.table(v.snapshot, width)
	for _, text := range trouble {
		for _, line := range wrap(text, width-2) {
			lines = append(lines, "  "+d.screen.paint(yellow, line))
		}
	}
	lines = append(lines, "", "  "+d.screen.paint(faint, cut(d.footer(v), width-2)))
	// The cursor cannot go back up to a line that has left the screen.
	d.screen.draw(lines[:min(len(lines), max(1, height-1))])
}

// footer sums up.
func (d *demo) footer(v *view) string {
	parts := []string{"up " + duration(time.Since(v.since)), count(v.rows()) + " rows published"}
	if v.allAfter > 0 {
		parts = append(parts, "rows in all five topics after "+duration(v.allAfter))
	}
	if d.length > 0 {
		parts = append(parts, "stops after "+duration(d.length))
	}
	return strings.Join(append(parts, "Ctrl-C stops"), ", ")
}

// plain is one line a resource for what is no terminal.
func plain(s status.Snapshot, trouble []string) []string {
	now := s.Now
	if now.IsZero() {
		now = time.Now()
	}
	at := now.UTC().Format("15:04:05Z")
	var lines []string
	for _, r := range s.Resources {
		text, _ := state(r, s.Now)
		lines = append(lines, fmt.Sprintf("%s  %-17s %11s rows  %7s rows/s  lag %-8s  settled %-19s  %s",
			at, "store."+r.Name, count(r.Rows), pace(r.RowsPerSecond), lag(r), instant(r.Settled), text))
	}
	for _, text := range trouble {
		lines = append(lines, at+"  "+strings.ReplaceAll(text, "\n", " "))
	}
	return lines
}
