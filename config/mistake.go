package config

import (
	"fmt"
	"strings"
)

// Entry is one key in force, for people.
type Entry struct {
	Key   string
	Value string // secrets are masked; if one is in a file, the file is named
	From  string // see Mistake.From
}

// Mistake is one mistake in a configuration.
type Mistake struct {
	// Key is the key, or the file.
	Key string
	// Value is the given value. A secret is masked. It is empty for an unknown key, because that may be the
	// misspelled key of a secret.
	Value string
	// From is the origin of the value: "default", "storestream.yaml:14", "environment STORESTREAM_LOG__LEVEL",
	// "flag --set". It is empty if Key names the origin.
	From string
	// Rule says what was expected and what to do.
	Rule string
}

// String names the key, its value, its origin and the rule.
func (m Mistake) String() string {
	text := m.Key
	if m.Value != "" {
		text += fmt.Sprintf(": %q", m.Value)
	}
	if m.From != "" {
		text += " (" + m.From + ")"
	}
	return text + ": " + m.Rule
}

// InvalidError is a configuration that cannot be used. It has all mistakes, so one correction is enough.
type InvalidError struct {
	Mistakes []Mistake
}

// Error lists all mistakes, one per line.
func (e *InvalidError) Error() string {
	if len(e.Mistakes) == 1 {
		return "configuration: " + e.Mistakes[0].String()
	}
	lines := []string{fmt.Sprintf("configuration: %d mistakes", len(e.Mistakes))}
	for _, m := range e.Mistakes {
		lines = append(lines, "  "+m.String())
	}
	return strings.Join(lines, "\n")
}
