package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/storestream/storestream/internal/terminal"
)

// level says how much a finding matters.
type level string

const (
	fine    level = "ok"
	note    level = "note" // to be known
	warning level = "warn" // works, and costs something
	failing level = "FAIL" // `run` will not work so
)

// finding is one line of `check`.
type finding struct {
	Level level  `json:"level"`
	Part  string `json:"part"`            // configuration, service, database, kafka, registry, status
	About string `json:"about,omitempty"` // a resource, topic or subject; "" for the part as a whole
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // the remedy
}

// findings are those of one part, in order.
type findings struct {
	part string
	all  []finding
}

func (f *findings) add(l level, about, do, format string, args ...any) {
	f.all = append(f.all, finding{Level: l, Part: f.part, About: about, Found: oneLine(fmt.Sprintf(format, args...)), Do: do})
}

func (f *findings) ok(about, format string, args ...any) { f.add(fine, about, "", format, args...) }
func (f *findings) fail(about string, err error, do string) {
	f.add(failing, about, do, "%s", err)
}

// oneLine makes one line of a text that may have several: joined errors do.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// print writes the finding as one line; about is as wide as the widest of all parts.
func (f finding) print(w io.Writer, p terminal.Paint, about int) error {
	colors := map[level]terminal.Style{fine: terminal.Green, note: terminal.Bold, warning: terminal.Yellow, failing: terminal.Red}
	line := p.As(colors[f.Level], terminal.Pad(string(f.Level), 4)) + "  " + terminal.Pad(strings.TrimSpace(f.Part+" "+f.About), about) + "  " + f.Found
	if f.Do != "" {
		line += p.As(terminal.Bold, " -> ") + f.Do
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
