package config

import (
	"cmp"
	"fmt"
	"slices"
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

// mistakes collects what is wrong while a configuration is loaded.
type mistakes struct {
	values *values
	found  []Mistake
	broken map[string]bool // keys whose value is a mistake: one of each is enough
}

func (m *mistakes) add(one Mistake) { m.found = append(m.found, one) }

// unknown adds a key that takes no value.
func (m *mistakes) unknown(key, from string) {
	if known := m.values.known; known.sections[key] {
		m.add(Mistake{Key: key, From: from, Rule: "a section takes no value: expected one of its keys: " +
			known.inSection(key)})
		return
	}
	nearest := m.values.known.nearest(key)
	m.add(Mistake{Key: key, From: from, Rule: "unknown key; the nearest known one is " + nearest})
}

// value adds a mistake in the value of a known key.
func (m *mistakes) value(key, rule string) {
	if m.broken[key] {
		return
	}
	m.broken[key] = true
	m.add(Mistake{Key: key, Value: m.values.shown(key), From: m.values.of(key).From, Rule: rule})
}

// require is a rule: what key was expected to be, unless ok.
func (m *mistakes) require(key string, ok bool, rule string) {
	if !ok {
		m.value(key, rule)
	}
}

func (m *mistakes) oneOf(key, value string, allowed ...string) {
	names := strings.Join(allowed, " or ")
	if allowed[0] == "" {
		names = "nothing" + names
	}
	m.require(key, slices.Contains(allowed, value), "expected "+names)
}

// inOrder sorts the mistakes as the keys are declared; what is not a known key comes first.
func (m *mistakes) inOrder() []Mistake {
	known := m.values.known.ordered
	slices.SortStableFunc(m.found, func(a, b Mistake) int {
		return cmp.Compare(slices.Index(known, a.Key), slices.Index(known, b.Key))
	})
	return m.found
}
