package config

import (
	"regexp"
	"strings"
)

// Input is where a configuration comes from.
type Input struct {
	File    string   // path of a YAML file; empty: none
	Environ []string // NAME=value, as os.Environ gives it
	Set     []string // key=value, from flags; the last word
}

// Load reads all layers and checks them. Every error is an *InvalidError.
func Load(in Input) (*Config, error) {
	s := newSettings()
	loadFile(in.File, s)
	loadEnvironment(in.Environ, s)
	loadFlags(in.Set, s)
	complete(s)
	c := decode(s)
	checkRules(c, s)
	if len(s.found) > 0 {
		return nil, &InvalidError{Mistakes: s.inOrder()}
	}
	c.entries = s.entries()
	return c, nil
}

// envPrefix is how the name of every environment variable of storestream begins.
const envPrefix = "STORESTREAM_"

// kubernetesLink is what Kubernetes sets in every pod for a Service whose name begins with "storestream":
// STORESTREAM_SERVICE_HOST, STORESTREAM_STATUS_PORT_8080_TCP_ADDR and the like. Taken for misspelled keys,
// they would keep storestream from starting there.
var kubernetesLink = regexp.MustCompile(`^STORESTREAM_(?:[A-Z0-9]+_)*(?:SERVICE_HOST|` +
	`SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$`)

// loadEnvironment lays the STORESTREAM_... variables over s.
func loadEnvironment(environ []string, s *settings) {
	keys := map[string]string{}
	var names []string
	for _, key := range s.ordered {
		if s.byKey[key] != nil {
			name := envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
			keys[name], names = key, append(names, name)
		}
	}
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || s.set(keys[name], text, "environment "+name) {
			continue
		}
		if !kubernetesLink.MatchString(name) || strings.Contains(name, "__") {
			s.mistake(name, "", "unknown environment variable; the nearest known one is "+Nearest(name, names))
		}
	}
}

// loadFlags lays the values of --set key=value over s.
func loadFlags(assignments []string, s *settings) {
	const from = "flag --set"
	for _, assignment := range assignments {
		key, text, ok := strings.Cut(assignment, "=")
		switch key = strings.TrimSpace(key); {
		case s.byKey[key] == nil:
			s.unknown(key, from)
		case !ok:
			s.mistake(key, from, "expected key=value")
		default:
			s.set(key, text, from)
		}
	}
}
