package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/storestream/storestream/internal/rotation"
)

// envPrefix is the prefix of storestream's environment variables.
const envPrefix = "STORESTREAM_"

// FileVariable is the environment variable that names the configuration file. It is not a key. The command
// line reads it in place of --config.
const FileVariable = envPrefix + "CONFIG"

// envName returns the variable that sets key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
}

// Input has the origins of a configuration.
type Input struct {
	File    string   // path of a YAML file; may be empty
	Environ []string // NAME=value, as os.Environ gives it
	Set     []string // key=value, from flags; it wins over the others
}

// Load reads all layers and checks them. The error joins every Mistake, so one correction is enough.
func Load(in Input) (*Config, error) {
	l := newLoader()
	loadFile(in.File, l)
	loadEnvironment(in.Environ, l)
	loadFlags(in.Set, l)
	c, err := l.decode()
	if err != nil { // a type of Config that parse does not know
		return nil, err
	}
	c.proxies = proxiesOf(in.Environ)
	checkRules(c, l)
	if len(l.found) > 0 {
		slices.SortStableFunc(l.found, func(a, b Mistake) int { return cmp.Compare(a.Key, b.Key) })
		var all []error
		for _, mistake := range l.found {
			all = append(all, mistake)
		}
		return nil, fmt.Errorf("mistakes in the configuration:\n%w", errors.Join(all...))
	}
	c.rotation.Hidden = c.hidden(l)
	c.entries = l.entries()
	for _, name := range slices.Sorted(maps.Keys(c.proxies)) {
		value := maskURL(c.proxies[name])
		c.entries = append(c.entries, Entry{Key: name, Value: value, From: "environment " + name})
	}
	return c, nil
}

// kubernetesLink is what Kubernetes sets in every pod for a Service whose name begins with "storestream":
// STORESTREAM_SERVICE_HOST, STORESTREAM_STATUS_PORT_8080_TCP_ADDR and the like. Taken for misspelled keys,
// they would keep storestream from starting there.
var kubernetesLink = regexp.MustCompile(`^STORESTREAM_(?:[A-Z0-9]+_)*(?:SERVICE_HOST|` +
	`SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$`)

// loadEnvironment lays the STORESTREAM_... variables over l.
func loadEnvironment(environ []string, l *loader) {
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		path, ours := strings.CutPrefix(name, envPrefix)
		link := kubernetesLink.MatchString(name) && !strings.Contains(name, "__")
		if ours && name != FileVariable && !link {
			l.set(setting{Key: strings.ToLower(strings.ReplaceAll(path, "__", ".")), Text: value,
				From: "environment " + name})
		}
	}
}

// keyShape is the form of a key. A text of another form may be a value whose = was forgotten.
var keyShape = regexp.MustCompile(`^[a-z][a-z_]*(\.[a-z][a-z_]*)*$`)

// loadFlags lays the values of --set key=value over l. A secret is refused, because every user of the machine
// can read command lines.
func loadFlags(set []string, l *loader) {
	for _, assignment := range set {
		key, value, ok := strings.Cut(assignment, "=")
		key = strings.TrimSpace(key)
		if !ok || !keyShape.MatchString(key) {
			l.mistake("--set", "expected key=value, as in log.level=debug")
			continue
		}
		l.set(setting{Key: key, Text: value, From: fromFlag})
	}
	for key := range l.leaves {
		shown := l.shown(key)
		unclear := key == keyDSN && shown == rotation.Mask // a mistake of its own
		secret := strings.Contains(shown, rotation.Mask) && !unclear
		l.require(key, !secret || l.of(key).From != fromFlag, "every user of this machine can read command "+
			"lines: expected it in the environment ("+envName(key)+"), or in a file (file:/path, or in a DSN "+
			"password=file:/path)")
	}
}
