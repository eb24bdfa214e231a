package config

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Entry is one key in force, for a person to read.
type Entry struct {
	Key   string
	Value string // a secret masked; one that is read from a file shows which
	From  string // see Mistake.From
}

// Entries is every key in force, in the order in which they are documented.
func (c *Config) Entries() []Entry { return slices.Clone(c.entries) }

func (l *loader) entries() []Entry {
	var entries []Entry
	for _, key := range l.known.ordered {
		if _, ok := l.known.leaves[key]; ok {
			s := l.settings[key]
			entries = append(entries, Entry{Key: key, Value: l.known.mask(key, s.text), From: s.from})
		}
	}
	return entries
}

// mask is the text of key's value without what must not be shown: secrets, and passwords within a URL.
func (k *keys) mask(key, text string) string {
	switch {
	case key == keyDSN:
		return maskDSN(text)
	case k.leaves[key].typ == reflect.TypeFor[Secret]():
		if strings.HasPrefix(text, secretFile) {
			return text
		}
		return Secret(text).String()
	case !strings.Contains(text, "@"):
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return masked
	}
	return maskUserinfo(u)
}
