package config

import (
	"math"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/storestream/storestream/schemas"
)

// envPrefix is how the name of every environment variable of storestream begins.
const envPrefix = "STORESTREAM_"

// leaf is one key that takes a value.
type leaf struct {
	key  string // "resources.orders.interval"
	text string // its default, as a user would write it
	typ  reflect.Type
}

// leaves appends every key of a section of type t, in the order in which it declares them.
func leaves(path string, t reflect.Type, found []leaf) []leaf {
	for f := range t.Fields() {
		key := join(path, f.Tag.Get("koanf"))
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Map:
			for _, d := range schemas.Declared() {
				found = append(found, resourceLeaves(join(key, d.Name), d)...)
			}
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			found = leaves(key, f.Type, found)
		default:
			found = append(found, leaf{key, f.Tag.Get("default"), f.Type})
		}
	}
	return found
}

func resourceLeaves(path string, d schemas.Declaration) []leaf {
	source := REST
	if d.Table != "" {
		source = Postgres
	}
	found := leaves(path, reflect.TypeFor[Resource](), nil)
	for i := range found {
		if text, ok := paces[source][strings.TrimPrefix(found[i].key, path+".")]; ok {
			found[i].text = text
		}
	}
	return found
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// keys answers questions about names.
type keys struct {
	leaves   map[string]leaf
	sections map[string]bool // "store", "kafka.tls", "resources.orders"
	ordered  []string        // leaves and sections
}

func knownKeys() *keys {
	k := &keys{leaves: map[string]leaf{}, sections: map[string]bool{}}
	for _, l := range leaves("", reflect.TypeFor[Config](), nil) {
		for i, r := range l.key {
			if section := l.key[:i]; r == '.' && !k.sections[section] {
				k.sections[section] = true
				k.ordered = append(k.ordered, section)
			}
		}
		k.leaves[l.key] = l
		k.ordered = append(k.ordered, l.key)
	}
	return k
}

// has says whether key takes a value.
func (k *keys) has(key string) bool {
	_, ok := k.leaves[key]
	return ok
}

// inSection is the names directly within a section, for a message.
func (k *keys) inSection(section string) string {
	var names []string
	for _, key := range k.ordered {
		if rest, ok := strings.CutPrefix(key, section+"."); ok && !strings.Contains(rest, ".") {
			names = append(names, rest)
		}
	}
	return strings.Join(names, ", ")
}

// nearest is the known key that is the fewest edits away from an unknown one.
func (k *keys) nearest(unknown string) string { return Nearest(unknown, k.ordered) }

// nearestEnv is the same for an environment variable's name.
func (k *keys) nearestEnv(unknown string) string {
	var names []string
	for _, key := range k.ordered {
		if k.has(key) {
			names = append(names, envName(key))
		}
	}
	return Nearest(unknown, names)
}

// envName is the variable that sets key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
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
