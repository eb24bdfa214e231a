package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one mistake in a configuration.
type Mistake struct {
	// Key is the key, the environment variable's name, or the file.
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

// InvalidError is a configuration that cannot be used. It has all mistakes, so one correction is enough.
type InvalidError struct {
	Mistakes []Mistake
}

// Error lists all mistakes, one per line.
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

// mistakes collects the mistakes while a configuration is loaded.
type mistakes struct {
	values *values
	found  []Mistake
	broken map[string]bool // keys whose value is a mistake already; one per key is enough
}

func (m *mistakes) add(one Mistake) { m.found = append(m.found, one) }

// unknown adds a mistake for a key that does not exist.
func (m *mistakes) unknown(key, from string) {
	if known := m.values.known; known.sections[key] {
		m.add(Mistake{Key: key, From: from, Rule: "a section takes no value: expected one of its keys: " +
			known.inSection(key)})
		return
	}
	nearest := m.values.known.nearest(key)
	m.add(Mistake{Key: key, From: from, Rule: "unknown key; the nearest known one is " + nearest})
}

// value adds a mistake for the value of a known key.
func (m *mistakes) value(key, rule string) {
	if m.broken[key] {
		return
	}
	m.broken[key] = true
	m.add(Mistake{Key: key, Value: m.values.shown(key), From: m.values.of(key).From, Rule: rule})
}

// require adds a mistake for key if ok is false. rule says what was expected.
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

// inOrder sorts the mistakes in the order of the keys' declaration. Unknown keys come first.
func (m *mistakes) inOrder() []Mistake {
	known := m.values.known.ordered
	slices.SortStableFunc(m.found, func(a, b Mistake) int {
		return cmp.Compare(slices.Index(known, a.Key), slices.Index(known, b.Key))
	})
	return m.found
}
