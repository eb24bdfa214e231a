package config

import "fmt"

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
	// Rule is the expectation, and the remedy.
	Rule string
}

// Error implements error.
func (m Mistake) Error() string {
	text := m.Key
	if m.Value != "" {
		text += fmt.Sprintf(": %q", m.Value)
	}
	if m.From != "" {
		text += " (" + m.From + ")"
	}
	return text + ": " + m.Rule
}
