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

// readSecret returns the secret in setting, or in the file that setting names.
func readSecret(setting string) (string, error) {
	if path, isFile := strings.CutPrefix(setting, secretFile); isFile {
		return rotation.SecretFile(path)()
	}
	return setting, nil
}

// rotated returns the secrets that are read again while storestream runs, by key. privacy.key is not among
// them, because another key gives the same text another hash.
func (c *Config) rotated() map[string]*rotation.Secret {
	return map[string]*rotation.Secret{
		"store.api_key":       &c.Store.APIKey,
		"kafka.sasl.password": &c.Kafka.SASL.Password,
		"registry.password":   &c.Registry.Password,
		"registry.token":      &c.Registry.Token,
		"http.token":          &c.HTTP.Token,
	}
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

// follow starts to read the secrets that are in files again and again.
func (c *Config) follow(l *loader) {
	c.rotation = &rotation.Set{Hidden: c.hidden(l)}
	for key, secret := range c.rotated() {
		path, isFile := strings.CutPrefix(l.of(key).Text, secretFile)
		if !isFile {
			continue
		}
		followed, err := rotation.Follow(c.rotation, key, path, func(secret string) error {
			return checkSecret(key, secret)
		})
		if err != nil { // it was valid a moment ago
			l.mistake(key, err.Error())
			continue
		}
		*secret = followed
	}
	// The database client reports changes of the DSN itself, because it also reads the certificates that belong
	// to it.
	value, err := rotation.New(nil, keyDSN, func(texts []string) (string, error) {
		hideDSN(c.rotation.Hidden, texts[0])
		return texts[0], nil
	}, func() (string, error) { return readDSN(l.of(keyDSN).Text) })
	switch {
	case err != nil:
		l.mistake(keyDSN, err.Error())
	case c.Postgres.DSN.IsSet():
		c.Postgres.DSN = rotation.FromValue(value)
	}
}

// hidden returns the secrets in use. No output may show them.
func (c *Config) hidden(l *loader) *rotation.Hidden {
	openly := []string{"storestream"}
	for _, e := range l.entries() {
		openly = append(openly, e.Key, e.Value)
	}
	database, _ := dsn.Parse(c.Postgres.DSN.Get()) // it was parsed before; an empty one has no user
	users := []string{c.Registry.Username, c.Kafka.SASL.Username, database.Value("user")}
	for _, address := range c.proxies {
		users = append(users, proxyLogin(address).Username())
	}
	h := rotation.NewHidden(strings.Join(openly, "\n"), users...)
	for key, secret := range c.rotated() {
		h.Add(key, secret.Get())
	}
	h.Add("privacy.key", c.Privacy.Key.Get())
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
	h.Add(keyDSN, d.Value("password"))
	h.Add(keyDSN, d.Value("sslpassword"))
}
