package config

import (
	"regexp"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

// kubernetesLink is what Kubernetes sets in every pod for a Service whose name begins with "storestream":
// STORESTREAM_SERVICE_HOST, STORESTREAM_STATUS_PORT_8080_TCP_ADDR and the like. Taken for misspelled keys,
// they would keep storestream from starting there.
var kubernetesLink = regexp.MustCompile(`^STORESTREAM_(?:[A-Z0-9]+_)*(?:SERVICE_HOST|` +
	`SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$`)

// loadEnvironment lays the STORESTREAM_... variables over v. environ is as os.Environ gives it.
func loadEnvironment(environ []string, v *values, m *mistakes) {
	take := func(name, value string) (string, any) {
		key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "__", "."))
		if v.known.has(key) && name == envName(key) {
			return key, setting{value, "environment " + name}
		}
		known := name == FileVariable || kubernetesLink.MatchString(name) && !strings.Contains(name, "__")
		if !known {
			rule := "unknown environment variable; the nearest known one is " + v.known.nearestEnv(name)
			m.add(Mistake{Key: name, Rule: rule})
		}
		return "", nil
	}
	provider := env.Provider(".", env.Opt{Prefix: envPrefix, TransformFunc: take,
		EnvironFunc: func() []string { return environ }})
	if err := v.koanf.Load(provider, nil); err != nil {
		m.add(Mistake{Key: "environment", Rule: err.Error()})
	}
}
