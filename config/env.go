package config

import (
	"regexp"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

// kubernetesLink is what Kubernetes sets in every pod for a Service whose name begins with "storestream": STORESTREAM_SERVICE_HOST,
// STORESTREAM_STATUS_PORT_8080_TCP_ADDR and the like. Taken for misspelled keys, they would keep storestream from starting there.
var kubernetesLink = regexp.MustCompile(`^STORESTREAM_(?:[A-Z0-9]+_)*(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|` +
	`PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$`)

// environment reads the layer of STORESTREAM_... variables. environ is as os.Environ gives it.
func (l *loader) environment(environ []string) {
	given := map[string]setting{}
	provider := env.Provider("", env.Opt{Prefix: envPrefix, EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "__", "."))
			if _, ok := l.known.leaves[key]; ok && name == envName(key) {
				return key, setting{text: value, from: "environment " + name}
			}
			if !kubernetesLink.MatchString(name) || strings.Contains(name, "__") {
				l.mistake(Mistake{Key: name, Rule: "unknown environment variable; the nearest known one is " + l.known.nearestEnv(name)})
			}
			return "", nil
		}})
	read, err := provider.Read()
	if err != nil {
		l.mistake(Mistake{Key: "environment", Rule: err.Error()})
		return
	}
	for key, value := range read {
		given[key] = value.(setting)
	}
	l.layer(given)
}
