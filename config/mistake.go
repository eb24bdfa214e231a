package config

import (
	"fmt"
	"strings"
)

// Mistake is one thing that is wrong.
type Mistake struct {
	// Key is the key, the environment variable's name, or the file.
	Key string
	// Value is the value as given, a secret masked. It is empty for an unknown key, which may be a misspelled
	// secret's.
	Value string
	// From is where it was given: "default", "storestream.yaml:14", "environment STORESTREAM_LOG__LEVEL", "flag
	// --set". It is empty where Key says it.
	From string
	// Rule is what was expected, and what to do.
	Rule string
}

// String names the key, its value, where it was given, and the rule.
func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.Key)
	if m.Value != "" {
		fmt.Fprintf(&b, ": %q", m.Value)
	}
	if m.From != "" {
		fmt.Fprintf(&b, " (%s)", m.From)
	}
	return b.String() + ": " + m.Rule
}

// InvalidError is a configuration that cannot be used. It holds every mistake, so that one correction is
// enough.
type InvalidError struct {
	Mistakes []Mistake
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
