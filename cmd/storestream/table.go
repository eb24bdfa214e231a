package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/storestream/storestream/schemas"
)

// table is aligned columns for a person.
type table struct{ lines []string }

func newTable(header ...string) *table { return &table{lines: []string{strings.Join(header, "\t")}} }

func (t *table) row(cells ...string) { t.lines = append(t.lines, strings.Join(cells, "\t")) }

func (t *table) print(w io.Writer) error {
	aligned := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, line := range t.lines {
		if _, err := fmt.Fprintln(aligned, line); err != nil {
			return err
		}
	}
	return aligned.Flush()
}

// printJSON writes v, indented.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
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
