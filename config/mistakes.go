package config

import (
	"fmt"
	"strings"
)

// InvalidError is a configuration that cannot be used. It holds every mistake that was found, so that one correction is enough.
type InvalidError struct {
	Mistakes []Mistake
}

// Mistake is one thing that is wrong.
type Mistake struct {
	Key   string // the key, the environment variable's name, or the file
	Value string // as given, a secret masked; empty for an unknown key: it may be a misspelled secret's
	From  string // where it was given: "default", "storestream.yaml:14", "environment STORESTREAM_LOG__LEVEL", "flag --set"; empty where Key says it
	Rule  string // what was expected, and what to do
}

func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.Key)
	if m.Value != "" {
		fmt.Fprintf(&b, ": %q", m.Value)
	}
	if m.From != "" {
		fmt.Fprintf(&b, " (%s)", m.From)
	}
	b.WriteString(": ")
	b.WriteString(m.Rule)
	return b.String()
}

// Error lists all mistakes, one a line.
func (e *InvalidError) Error() string {
	if len(e.Mistakes) == 1 {
		return "configuration: " + e.Mistakes[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %d mistakes", len(e.Mistakes))
	for _, m := range e.Mistakes {
		b.WriteString("\n  " + m.String())
	}
	return b.String()
}
