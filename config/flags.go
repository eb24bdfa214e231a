package config

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// keyShape is what a key looks like. What does not look so may be a value whose = was forgotten.
var keyShape = regexp.MustCompile(`^[a-z][a-z_]*(\.[a-z][a-z_]*)*$`)

// loadFlags lays the values of --set key=value over v.
func loadFlags(set []string, v *values, m *mistakes) {
	const from = "flag --set"
	given := layer{}
	for _, assignment := range set {
		key, value, ok := strings.Cut(assignment, "=")
		switch key = strings.TrimSpace(key); {
		case !ok && !v.known.has(key), !keyShape.MatchString(key):
			m.add(Mistake{Key: "--set", Rule: "expected key=value, as in log.level=debug"})
		case !v.known.has(key):
			m.unknown(key, from)
		case !ok:
			m.add(Mistake{Key: key, From: from, Rule: "expected key=value"})
		default:
			given[key] = setting{value, from}
		}
	}
	v.lay(given)
	for key, s := range given {
		if v.known.secret(key, s.Text) {
			m.value(key, "whoever may list the processes of this machine reads a command line: expected it in the "+
				"environment ("+envName(key)+"), or in a file that is named here ("+fileForm(key)+")")
		}
	}
}

// secret says whether text, a value of key, is a secret itself and not the name of a file.
func (k *keys) secret(key, text string) bool {
	if key == keyDSN && !strings.HasPrefix(text, secretFile) {
		d, err := dsn.Parse(text)
		return err == nil && d.HasSecret() // one that cannot be understood is a mistake of its own
	}
	isSecret := k.leaves[key].typ == reflect.TypeFor[rotation.Secret]()
	return isSecret && text != "" && !strings.HasPrefix(text, secretFile)
}

func fileForm(key string) string {
	if key == keyDSN {
		return key + "='host=... password=file:/path'"
	}
	return key + "=file:/path"
}
