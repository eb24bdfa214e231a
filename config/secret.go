package config

import (
	"errors"
	"strings"
	"unicode"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// secretFile is the prefix of a path to a file that holds the secret.
const secretFile = "file:"

// secret returns the secret in text, or the one in the file that text names. The file is read again while
// storestream runs, unless it is that of privacy.key: another key gives the same text another hash.
func (l *loader) secret(key, text string) (rotation.Secret, error) {
	path, isFile := strings.CutPrefix(text, secretFile)
	switch {
	case key == keyDSN && text != "":
		// The database client reports changes of the DSN itself, because it also reads the certificates that belong
		// to it.
		value, err := rotation.New(nil, key, func(texts []string) (string, error) {
			hideDSN(l.files.Hidden, texts[0])
			return texts[0], nil
		}, func() (string, error) { return readDSN(text) })
		return rotation.FromValue(value), err
	case key == keyPrivacy && isFile:
		secret, err := rotation.SecretFile(path)()
		return rotation.Literal(secret), err
	case isFile:
		return rotation.Follow(l.files, key, path, func(secret string) error { return checkSecret(key, secret) })
	}
	return rotation.Literal(text), checkSecret(key, text)
}

// checkSecret checks a secret by the rule of its key. Servers and net/http refuse control characters without
// naming the setting, and such a file is usually half written or in another encoding. Characters beyond ASCII
// have no agreed form in a header that has the secret as it is.
func checkSecret(key, secret string) error {
	asItIs := key == "store.api_key" || key == "registry.token" || key == "http.token"
	for _, r := range secret {
		if unicode.IsControl(r) || r == '\ufeff' || asItIs && r > unicode.MaxASCII {
			return errors.New("expected one line of text without control characters and byte order mark, and of " +
				"ASCII characters if it is a key or a token")
		}
	}
	if key == "http.token" && secret != "" && (len(secret) < 16 || strings.Contains(secret, " ")) {
		return errors.New("expected 16 or more characters without spaces, such as openssl rand -hex 32 prints")
	}
	return nil
}

// hidden returns the secrets in use. No output may show them.
func (c *Config) hidden(l *loader) *rotation.Hidden {
	openly := []string{"storestream"}
	for _, e := range l.entries() {
		openly = append(openly, e.Key, e.Value)
	}
	database, _ := dsn.Parse(c.Postgres.DSN.Get()) // it was parsed before; an empty one has no user
	users := []string{c.Registry.Username, c.Kafka.SASL.Username, database["user"]}
	for _, address := range c.proxies {
		users = append(users, proxyLogin(address).Username())
	}
	h := rotation.NewHidden(strings.Join(openly, "\n"), users...)
	for key, secret := range l.secrets {
		if key != keyDSN {
			h.Add(key, secret.Get())
		}
	}
	hideDSN(h, c.Postgres.DSN.Get())
	for name, address := range c.proxies {
		if password, has := proxyLogin(address).Password(); has {
			h.Add(name, password)
		}
		if strings.Contains(address, "@") { // net/http repeats an address that it cannot read
			h.Add(name+" as a whole", address)
		}
	}
	return h
}

// hideDSN hides the secret parts of a DSN.
func hideDSN(h *rotation.Hidden, text string) {
	d, _ := dsn.Parse(text) // it was parsed before
	h.Add(keyDSN, d["password"])
	h.Add(keyDSN, d["sslpassword"])
}
