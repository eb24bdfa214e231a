package config

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/storestream/storestream/schemas"
)

// fromDefault is the origin of what nobody set.
const fromDefault = "default"

// setting is one key, and the value that the last layer gave it.
type setting struct {
	text     string        // as written; may be a secret
	from     string        // see Mistake.From
	standard string        // its default
	into     reflect.Value // its place in the Config, or in settings.resources
}

// settings is every key while a configuration is loaded, and what is wrong with it.
type settings struct {
	byKey     map[string]*setting
	ordered   []string // keys and the names of their sections, as Config declares them
	config    *Config
	resources map[string]*Resource // those of config, until all is read
	found     []Mistake
	broken    map[string]bool // keys whose value is a mistake: one of each is enough
}

// newSettings returns every key at its default.
func newSettings() *settings {
	s := &settings{byKey: map[string]*setting{}, config: &Config{}, resources: map[string]*Resource{},
		broken: map[string]bool{}}
	s.declare("", reflect.ValueOf(s.config).Elem())
	return s
}

// declare adds the keys of a section: the fields of v.
func (s *settings) declare(path string, v reflect.Value) {
	for f, field := range v.Fields() {
		key := join(path, f.Tag.Get("key"))
		switch {
		case !f.IsExported():
			continue
		case f.Type.Kind() == reflect.Map:
			s.ordered = append(s.ordered, key)
			for _, d := range schemas.Declared() {
				s.declareResource(join(key, d.Name), d)
			}
			continue
		}
		s.ordered = append(s.ordered, key)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			s.declare(key, field)
			continue
		}
		text := f.Tag.Get("default")
		s.byKey[key] = &setting{text: text, from: fromDefault, standard: text, into: field}
	}
}

func (s *settings) declareResource(path string, d schemas.Declaration) {
	r := &Resource{}
	s.resources[d.Name] = r
	s.ordered = append(s.ordered, path)
	s.declare(path, reflect.ValueOf(r).Elem())
	source := REST
	if d.Table != "" {
		source = Postgres
	}
	for name, text := range paces[source] {
		of := s.byKey[join(path, name)]
		of.text, of.standard = text, text
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// set lays a value over the one that key has, if it is a key.
func (s *settings) set(key, text, from string) bool {
	of := s.byKey[key]
	if of != nil {
		of.text, of.from = text, from
	}
	return of != nil
}

// isSection says whether keys begin with name and a dot.
func (s *settings) isSection(name string) bool {
	return s.byKey[name] == nil && slices.Contains(s.ordered, name)
}

// inSection is the names directly within a section, for a message.
func (s *settings) inSection(section string) string {
	var names []string
	for _, key := range s.ordered {
		if rest, ok := strings.CutPrefix(key, section+"."); ok && !strings.Contains(rest, ".") {
			names = append(names, rest)
		}
	}
	return strings.Join(names, ", ")
}

// Nearest is the known name that is the fewest edits away from an unknown one; the first of equals.
func Nearest(unknown string, known []string) string {
	best, fewest := "", math.MaxInt
	for _, name := range known {
		if n := levenshtein.ComputeDistance(unknown, name); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// shown is the value of a key without what must not be shown: secrets, and passwords within a URL.
func (s *settings) shown(key string) string {
	text := s.byKey[key].text
	switch {
	case key == keyDSN:
		return maskDSN(text)
	case s.byKey[key].into.Type() == reflect.TypeFor[Secret]():
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

// Entry is one key in force, for a person to read.
type Entry struct {
	Key   string
	Value string // a secret masked; one that is read from a file shows which
	From  string // see Mistake.From
}

// entries is every key in force, in the order in which Config declares them.
func (s *settings) entries() []Entry {
	var entries []Entry
	for _, key := range s.ordered {
		if of := s.byKey[key]; of != nil {
			entries = append(entries, Entry{Key: key, Value: s.shown(key), From: of.from})
		}
	}
	return entries
}

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
	s := m.Key
	if m.Value != "" {
		s += fmt.Sprintf(": %q", m.Value)
	}
	if m.From != "" {
		s += " (" + m.From + ")"
	}
	return s + ": " + m.Rule
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
	s := fmt.Sprintf("configuration: %d mistakes", len(e.Mistakes))
	for _, m := range e.Mistakes {
		s += "\n  " + m.String()
	}
	return s
}

// mistake adds one that is not in the value of a known key.
func (s *settings) mistake(key, from, rule string) {
	s.found = append(s.found, Mistake{Key: key, From: from, Rule: rule})
}

// unknown adds a key that nobody knows.
func (s *settings) unknown(key, from string) {
	s.mistake(key, from, "unknown key; the nearest known one is "+Nearest(key, s.ordered))
}

// wrong adds a mistake in the value of a known key.
func (s *settings) wrong(key, rule string) {
	if s.broken[key] {
		return
	}
	s.broken[key] = true
	s.found = append(s.found, Mistake{Key: key, Value: s.shown(key), From: s.byKey[key].from, Rule: rule})
}

// require is a rule: what key was expected to be, unless ok.
func (s *settings) require(key string, ok bool, rule string) {
	if !ok {
		s.wrong(key, rule)
	}
}

func (s *settings) oneOf(key, value string, allowed ...string) {
	names := strings.Join(allowed, " or ")
	if allowed[0] == "" {
		names = "nothing" + names
	}
	s.require(key, slices.Contains(allowed, value), "expected "+names)
}

// inOrder sorts the mistakes as the keys are declared; what is not a known key comes first.
func (s *settings) inOrder() []Mistake {
	slices.SortStableFunc(s.found, func(a, b Mistake) int {
		return cmp.Compare(slices.Index(s.ordered, a.Key), slices.Index(s.ordered, b.Key))
	})
	return s.found
}
