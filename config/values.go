package config

import (
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// setting is the value of one key as it was given. koanf copies its exported fields.
type setting struct {
	Text string // as written; may be a secret
	From string // see Mistake.From
}

// fromDefault is the origin of what nobody set.
const fromDefault = "default"

// layer is what one place sets, by key.
type layer map[string]setting

// values is every key's setting, from whichever layer was the last to give one.
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

// defaults is the layer of those keys' defaults.
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

// of is the setting of a key; a zero one where the key is not known.
func (v *values) of(key string) setting {
	s, _ := v.koanf.Get(key).(setting)
	return s
}

// shown is the value of a key for a person to read.
func (v *values) shown(key string) string { return v.known.mask(key, v.of(key).Text) }

// Entry is one key in force, for a person to read.
type Entry struct {
	Key   string
	Value string // a secret masked; one that is read from a file shows which
	From  string // see Mistake.From
}

// entries is every key in force, in the order in which Config declares them.
func (v *values) entries() []Entry {
	var entries []Entry
	for _, key := range v.known.ordered {
		if v.known.has(key) {
			entries = append(entries, Entry{Key: key, Value: v.shown(key), From: v.of(key).From})
		}
	}
	return entries
}
