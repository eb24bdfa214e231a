package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
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
	text string // its value, as a user would write it
	typ  reflect.Type
}

// leaves is every key of c, in the order in which Config declares them.
func leaves(c Config) []leaf {
	var found []leaf
	walk("", reflect.ValueOf(c), &found)
	return found
}

func walk(path string, v reflect.Value, found *[]leaf) {
	switch v.Interface().(type) {
	case time.Time:
		*found = append(*found, leaf{path, text(v), v.Type()})
		return
	case map[string]Resource:
		for _, name := range schemas.Names() {
			walk(join(path, name), v.MapIndex(reflect.ValueOf(name)), found)
		}
		return
	}
	if v.Kind() != reflect.Struct {
		*found = append(*found, leaf{path, text(v), v.Type()})
		return
	}
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("koanf"); tag != "" {
			walk(join(path, tag), v.Field(i), found)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// text writes a leaf's value as a user would: the opposite of parse. It does not mask.
func text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Secret:
		return string(x)
	case time.Duration:
		return durationText(x)
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.Format(time.DateOnly)
	case []string:
		return strings.Join(x, ",")
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// durationText is Go's, without the zeros at its end: 24h for 24h0m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// keys answers questions about names.
type keys struct {
	leaves   map[string]leaf
	sections map[string]bool // "store", "kafka.tls", "resources.orders"
	ordered  []string        // leaves and sections
}

func knownKeys() *keys {
	k := &keys{leaves: map[string]leaf{}, sections: map[string]bool{}}
	for _, l := range leaves(Default()) {
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
		if _, ok := k.leaves[key]; ok {
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
