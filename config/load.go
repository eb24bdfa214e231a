package config

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// Input is where a configuration comes from.
type Input struct {
	File    string   // path of a YAML file; empty: none
	Environ []string // NAME=value, as os.Environ gives it
	Set     []string // key=value, from flags; the last word
}

// setting is one key as it was given.
type setting struct {
	text string // as written; may be a secret
	from string // see Mistake.From
}

// fromDefault is the origin of what nobody set.
const fromDefault = "default"

// Load reads all layers and checks them. Every error is an *InvalidError.
func Load(in Input) (*Config, error) {
	l := &loader{koanf: koanf.New("."), known: knownKeys(), settings: map[string]setting{}, wrong: map[string]bool{}}
	l.defaults()
	l.file(in.File)
	l.environment(in.Environ)
	l.flags(in.Set)
	c := l.decode()
	l.resolve(c)
	l.pace(c)
	l.check(c)
	if len(l.mistakes) > 0 {
		return nil, &InvalidError{Mistakes: l.inOrder()}
	}
	c.entries = l.entries()
	return c, nil
}

// loader is a configuration in the making.
type loader struct {
	koanf    *koanf.Koanf
	known    *keys
	settings map[string]setting // the winner of every key
	mistakes []Mistake
	wrong    map[string]bool // keys with a mistake: one is enough
}

func (l *loader) mistake(m Mistake) { l.mistakes = append(l.mistakes, m) }

// broken adds a mistake in the value of a known key.
func (l *loader) broken(key, rule string) {
	if l.wrong[key] {
		return
	}
	l.wrong[key] = true
	s := l.settings[key]
	l.mistake(Mistake{Key: key, Value: l.known.mask(key, s.text), From: s.from, Rule: rule})
}

// layer lays what is given over the layers before it.
func (l *loader) layer(given map[string]setting) {
	texts := map[string]any{}
	for key, s := range given {
		texts[key] = s.text
		l.settings[key] = s
	}
	if err := l.koanf.Load(confmap.Provider(texts, "."), nil); err != nil {
		l.mistake(Mistake{Key: "configuration", Rule: err.Error()})
	}
}

func (l *loader) defaults() {
	given := map[string]setting{}
	for key, leaf := range l.known.leaves {
		given[key] = setting{text: leaf.text, from: fromDefault}
	}
	l.layer(given)
}

// flags reads the layer of --set key=value.
func (l *loader) flags(set []string) {
	given := map[string]setting{}
	for _, assignment := range set {
		key, value, ok := strings.Cut(assignment, "=")
		key = strings.TrimSpace(key)
		if _, known := l.known.leaves[key]; !known {
			l.mistake(Mistake{Key: key, From: "flag --set", Rule: "unknown key; the nearest known one is " + l.known.nearest(key)})
			continue
		}
		if !ok {
			l.mistake(Mistake{Key: key, From: "flag --set", Rule: "expected key=value"})
			continue
		}
		given[key] = setting{text: value, from: "flag --set"}
	}
	l.layer(given)
}

// decode turns the texts into a Config. A value that is not of its key's type is a mistake and gives way to its default, so that the
// rules are held against everything else: mapstructure drops a whole resource for one field.
func (l *loader) decode() *Config {
	c, err := l.unmarshal()
	l.typeMistakes(err)
	if err == nil {
		return c
	}
	instead := map[string]any{}
	for key := range l.wrong {
		instead[key] = l.known.leaves[key].text
	}
	if err := l.koanf.Load(confmap.Provider(instead, "."), nil); err != nil {
		l.mistake(Mistake{Key: "configuration", Rule: err.Error()})
	}
	c, err = l.unmarshal()
	if err != nil && len(l.mistakes) == 0 {
		l.mistake(Mistake{Key: "configuration", Rule: err.Error()})
	}
	return c
}

func (l *loader) unmarshal() (*Config, error) {
	c := &Config{}
	err := l.koanf.UnmarshalWithConf("", c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: c, TagName: "koanf", DecodeHook: mapstructure.DecodeHookFuncType(parse)}})
	return c, err
}

// typeMistakes finds the keys in the tree of errors that mapstructure returns.
func (l *loader) typeMistakes(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.typeMistakes(e)
		}
		return
	}
	if err == nil {
		return
	}
	decode, ok := err.(*mapstructure.DecodeError) //nolint:errorlint // this walks the tree itself, one step at a time
	if !ok {
		if inner := errors.Unwrap(err); inner != nil {
			l.typeMistakes(inner)
		} else {
			l.mistake(Mistake{Key: "configuration", Rule: err.Error()})
		}
		return
	}
	key := strings.NewReplacer("[", ".", "]", "").Replace(decode.Name())
	l.broken(key, decode.Unwrap().Error())
}

// inOrder sorts the mistakes as the keys are declared; what is not a known key comes first.
func (l *loader) inOrder() []Mistake {
	slices.SortStableFunc(l.mistakes, func(a, b Mistake) int {
		return cmp.Compare(slices.Index(l.known.ordered, a.Key), slices.Index(l.known.ordered, b.Key))
	})
	return l.mistakes
}
