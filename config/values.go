package config

import (
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// setting is the given value of one key. koanf copies its exported fields.
type setting struct {
	Text string // as written; may be a secret
	From string // see Mistake.From
}

// fromDefault is the origin of a default.
const fromDefault = "default"

// layer has the settings of one origin, by key.
type layer map[string]setting

// values has the setting of every key. The last layer that has the key wins.
type values struct {
	known *keys
	koanf *koanf.Koanf
}

// newValues returns the defaults.
func newValues() *values {
	v := &values{known: knownKeys(), koanf: koanf.New(".")}
	v.lay(v.defaults(v.known.ordered...))
	return v
}

// defaults returns the layer of defaults.
func (v *values) defaults(keys ...string) layer {
	l := layer{}
	for _, key := range keys {
		if leaf, ok := v.known.leaves[key]; ok {
			l[key] = setting{leaf.text, fromDefault}
		}
	}
	return l
}

// lay lays l over the layers before it.
func (v *values) lay(l layer) {
	given := map[string]any{}
	for key, s := range l {
		given[key] = s
	}
	_ = v.koanf.Load(confmap.Provider(given, "."), nil) // reading a map cannot fail, nor can merging one
}

// of returns the setting of a key. It is zero if the key is unknown.
func (v *values) of(key string) setting {
	s, _ := v.koanf.Get(key).(setting)
	return s
}

// shown returns the value of a key for people. Secrets are masked.
func (v *values) shown(key string) string { return v.known.mask(key, v.of(key).Text) }

// Entry is one key in force, for people.
type Entry struct {
	Key   string
	Value string // secrets are masked; if one is in a file, the file is named
	From  string // see Mistake.From
}

// entries returns every key in force, in the order of Config's fields.
func (v *values) entries() []Entry {
	var entries []Entry
	for _, key := range v.known.ordered {
		if v.known.has(key) {
			entries = append(entries, Entry{Key: key, Value: v.shown(key), From: v.of(key).From})
		}
	}
	return entries
}
