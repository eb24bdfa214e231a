package config

import "strings"

// loadFlags lays the values of --set key=value over v.
func loadFlags(set []string, v *values, m *mistakes) {
	const from = "flag --set"
	given := layer{}
	for _, assignment := range set {
		key, value, ok := strings.Cut(assignment, "=")
		switch key = strings.TrimSpace(key); {
		case !v.known.has(key):
			m.unknown(key, from)
		case !ok:
			m.add(Mistake{Key: key, From: from, Rule: "expected key=value"})
		default:
			given[key] = setting{value, from}
		}
	}
	v.lay(given)
}
