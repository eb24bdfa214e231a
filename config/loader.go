package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/schemas"
)

// Origins of a value, see Mistake.From.
const (
	fromDefault = "default"
	fromFlag    = "flag --set"
)

// setting is the given value of one key. koanf copies its exported fields.
type setting struct {
	Key  string
	Text string // as written, the elements of a list between commas; may be a secret
	From string // see Mistake.From
	List bool   // written as a list or a mapping of YAML
}

// loader collects the settings and the mistakes while a configuration is loaded.
type loader struct {
	names   []string                       // sections ("kafka.tls") and keys, in the order of Config's fields
	leaves  map[string]reflect.StructField // by key
	koanf   *koanf.Koanf                   // has a setting for every key; the last layer that has the key wins
	secrets map[string]rotation.Secret     // by key
	files   *rotation.Set                  // of secrets and certificates
	found   []Mistake
	broken  map[string]bool // keys with a mistake; one per key is enough
}

// newLoader returns a loader that has the defaults.
func newLoader() *loader {
	l := &loader{leaves: map[string]reflect.StructField{}, koanf: koanf.New("."), files: &rotation.Set{},
		secrets: map[string]rotation.Secret{}, broken: map[string]bool{}}
	l.declare("", reflect.TypeFor[Config]())
	for key, leaf := range l.leaves {
		l.lay(setting{Key: key, Text: leaf.Tag.Get("default"), From: fromDefault})
	}
	return l
}

// declare adds the sections and keys of a struct.
func (l *loader) declare(path string, t reflect.Type) {
	for f := range t.Fields() {
		key := join(path, f.Tag.Get("koanf"))
		switch {
		case !f.IsExported():
		case f.Anonymous:
			l.declare(path, f.Type)
		case f.Type == reflect.TypeFor[map[string]Resource]():
			l.names = append(l.names, key)
			for _, name := range schemas.Names() {
				l.names = append(l.names, join(key, name))
				l.declare(join(key, name), f.Type.Elem())
			}
		case f.Type.PkgPath() == t.PkgPath() && f.Type.Kind() == reflect.Struct:
			l.names = append(l.names, key)
			l.declare(key, f.Type)
		default:
			l.names = append(l.names, key)
			l.leaves[key] = f
		}
	}
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// lay lays a setting over those of the same key before it.
func (l *loader) lay(s setting) {
	_ = l.koanf.Set(s.Key, s) // a single value can be merged with any
}

// of returns the setting of a key. It is zero if the key is unknown.
func (l *loader) of(key string) setting {
	s, _ := l.koanf.Get(key).(setting)
	return s
}

// set lays a setting of the user's over those before it. It is a mistake if its key does not take it.
func (l *loader) set(s setting) {
	leaf, isLeaf := l.leaves[s.Key]
	var rule string
	switch {
	case s.Key == "", slices.Contains(l.names, s.Key) && !isLeaf:
		var names []string
		for _, name := range l.names {
			if rest, ok := strings.CutPrefix(name, join(s.Key, "")); ok && !strings.Contains(rest, ".") {
				names = append(names, rest)
			}
		}
		rule = "a section takes no value: expected one of its keys: " + strings.Join(names, ", ")
	case !isLeaf:
		near := slices.MinFunc(l.names, func(a, b string) int {
			return levenshtein.ComputeDistance(s.Key, a) - levenshtein.ComputeDistance(s.Key, b)
		})
		rule = fmt.Sprintf("unknown key; the nearest known one is %s (in the environment %s)", near, envName(near))
	case s.List && leaf.Type.Kind() != reflect.Slice && leaf.Type.Kind() != reflect.Map:
		rule = "expected one value, found a list or a section: a value that begins with [ { or - takes quotes"
	default:
		l.lay(s)
		return
	}
	l.found = append(l.found, Mistake{Key: s.Key, From: s.From, Rule: rule})
}

// complete sets the source of resources to REST if there is no database, and gives each resource the interval
// and overlap of its source, unless they are set. A database finds changes by an index. The service shows
// whole days only.
func (l *loader) complete() {
	for _, d := range schemas.Declared() {
		path := "resources." + d.Name + "."
		set := func(key, text, from string) { l.lay(setting{Key: path + key, Text: text, From: from}) }
		switch source := l.of(path + "source").Text; {
		case d.Table == "" && source == "":
			set("source", REST, fromDefault)
		case d.Table != "" && (source == "" || source == Postgres) && l.of(keyDSN).Text == "":
			set("source", REST, "because postgres.dsn is empty")
		case source == "":
			set("source", Postgres, fromDefault)
		}
		pace := map[string]string{"interval": "30s", "overlap": "5m"}
		if l.of(path+"source").Text == Postgres {
			pace = map[string]string{"interval": "1s", "overlap": "2m"}
		}
		for key, text := range pace {
			if l.of(path+key).Text == "" {
				set(key, text, fromDefault)
			}
		}
	}
}

// decode turns the texts into a Config. A value that is a mistake is left out.
func (l *loader) decode() (*Config, error) {
	l.complete()
	c := &Config{rotation: l.files, tls: map[string]*tlsfile.Client{}}
	err := l.koanf.UnmarshalWithConf("", c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: c, TagName: "koanf", DecodeHook: mapstructure.DecodeHookFuncType(l.read)}})
	c.Store.BaseURL = strings.TrimRight(c.Store.BaseURL, "/")
	return c, err
}

// mistake adds a mistake for the value of a known key, or for an input as a whole.
func (l *loader) mistake(key, rule string) {
	if !l.broken[key] {
		l.broken[key] = true
		l.found = append(l.found, Mistake{Key: key, Value: l.shown(key), From: l.of(key).From, Rule: rule})
	}
}

// require adds a mistake for key if ok is false. rule is the mistake's Rule.
func (l *loader) require(key string, ok bool, rule string) {
	if !ok {
		l.mistake(key, rule)
	}
}

// shown returns the value of a key without secrets.
func (l *loader) shown(key string) string {
	text := l.of(key).Text
	switch {
	case key == keyDSN:
		return maskDSN(text)
	case l.leaves[key].Type != reflect.TypeFor[rotation.Secret]():
		return maskURL(text)
	case strings.HasPrefix(text, secretFile):
		return text
	}
	return rotation.Literal(text).String()
}

// entries returns every key in force, in the order of Config's fields.
func (l *loader) entries() []Entry {
	var entries []Entry
	for _, key := range l.names {
		if _, isLeaf := l.leaves[key]; isLeaf {
			entries = append(entries, Entry{Key: key, Value: l.shown(key), From: l.of(key).From})
		}
	}
	return entries
}
