package config

import (
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/schemas"
)

// envPrefix is the prefix of storestream's environment variables.
const envPrefix = "STORESTREAM_"

// FileVariable is the environment variable that names the configuration file. It is not a key. The command
// line reads it in place of --config.
const FileVariable = envPrefix + "CONFIG"

// leaf is one key that has a value.
type leaf struct {
	key  string // "resources.orders.interval"
	text string // its default, as a user would write it
	typ  reflect.Type
}

// leaves appends every key of a section of type t, in the order of its fields.
func leaves(path string, t reflect.Type, found []leaf) []leaf {
	for f := range t.Fields() {
		key := path // of embedded keys
		if !f.Anonymous {
			key = join(path, f.Tag.Get("koanf"))
		}
		switch {
		case !f.IsExported():
		case f.Type == reflect.TypeFor[map[string]Resource]():
			for _, d := range schemas.Declared() {
				found = append(found, resourceLeaves(join(key, d.Name), d)...)
			}
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() &&
			f.Type != reflect.TypeFor[rotation.Secret]():
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

// keys has the names of all keys.
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

// has reports whether key has a value.
func (k *keys) has(key string) bool {
	_, ok := k.leaves[key]
	return ok
}

// inSection lists the names directly within a section ("" for the whole file), for a message.
func (k *keys) inSection(section string) string {
	var names []string
	for _, key := range k.ordered {
		if rest, ok := strings.CutPrefix(key, join(section, "")); ok && !strings.Contains(rest, ".") {
			names = append(names, rest)
		}
	}
	return strings.Join(names, ", ")
}

// nearest returns the known key with the fewest edits from an unknown one.
func (k *keys) nearest(unknown string) string { return nearest(unknown, k.ordered) }

// nearestEnv is the same for an environment variable's name.
func (k *keys) nearestEnv(unknown string) string {
	var names []string
	for _, key := range k.ordered {
		if k.has(key) {
			names = append(names, envName(key))
		}
	}
	return nearest(unknown, names)
}

// envName returns the variable that sets key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
}

// nearest returns the first known name with the fewest edits from an unknown one.
func nearest(unknown string, known []string) string {
	best, fewest := "", math.MaxInt
	for _, name := range known {
		if n := levenshtein.ComputeDistance(unknown, name); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// NearMiss returns the known name that an unknown one was probably meant to be, or "". It is at most two
// edits away (and not all of the name), or contains the unknown one.
func NearMiss(unknown string, known []string) string {
	closest := nearest(unknown, known)
	if edits := levenshtein.ComputeDistance(unknown, closest); edits <= 2 && edits < len(unknown) {
		return closest
	}
	for _, name := range known {
		if len(unknown) > 2 && strings.Contains(name, unknown) {
			return name
		}
	}
	return ""
}

// mask returns the text of key's value without secrets and without passwords in a URL.
func (k *keys) mask(key, text string) string {
	switch {
	case key == keyDSN:
		return maskDSN(text)
	case k.leaves[key].typ == reflect.TypeFor[rotation.Secret]():
		if strings.HasPrefix(text, secretFile) {
			return text
		}
		return rotation.Literal(text).String()
	}
	return maskURL(text)
}

// maskURL returns text without the user, the password, the query and the fragment of a URL. A / in a password
// moves the borders of the URL, so a URL with an @ after the host is masked as a whole.
func maskURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if at := strings.LastIndex(text, "@"); at >= 0 && strings.Contains(text[:at], ":") {
			return rotation.Mask // user:password@host, without its scheme
		}
		return text
	}
	where := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		where = rest[:i]
	}
	path := rest[len(where):]
	if strings.Count(where, "@") > 1 || strings.Contains(path, "@") {
		return rotation.Mask
	}
	if _, host, found := strings.Cut(where, "@"); found {
		where = rotation.Mask + "@" + host
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i+1] + rotation.Mask
	}
	return scheme + "://" + where + path
}
