package schemas

import "strings"

// Mistake is one thing wrong with a schema file.
type Mistake struct {
	File  string
	Field string // "" where it is the record or the whole file
	Rule  string // what is wrong, and what was expected
}

// String names the file, the field and the rule.
func (m Mistake) String() string {
	if m.Field == "" {
		return m.File + ": " + m.Rule
	}
	return m.File + ": field " + m.Field + ": " + m.Rule
}

// MistakesError is everything wrong with the schema files, so that a person can correct all of it at once.
// Waiting does not help.
type MistakesError struct{ Mistakes []Mistake }

// Error lists the mistakes, one a line.
func (e *MistakesError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.String()
	}
	return "schemas: " + strings.Join(lines, "\n         ")
}
