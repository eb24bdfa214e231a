package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// secretFile is the prefix of a path to a file that holds the secret.
const secretFile = "file:"

// readSecret returns the secret in text, or in the file that text names. A newline at the end of the file is
// not part of the secret.
func readSecret(text string) (rotation.Secret, error) {
	path, isFile := strings.CutPrefix(text, secretFile)
	if !isFile {
		return rotation.Literal(text), nil
	}
	secret, err := rotation.SecretFile(path)()
	if wrong, ok := errors.AsType[*rotation.FileError](err); ok { // the mistake that it becomes names the path
		err = fmt.Errorf("the secret cannot be read from its file: %w; expected one that the user of this "+
			"process may read", wrong.Err)
	}
	return rotation.Literal(secret), err
}

// rotated returns the secrets that are read again while storestream runs, by key. privacy.key is not among
// them, because another key gives the same text another hash.
func (c *Config) rotated() map[string]*rotation.Secret {
	return map[string]*rotation.Secret{
		"store.api_key":            &c.Store.APIKey,
		"kafka.sasl.password":      &c.Kafka.SASL.Password,
		"kafka.sasl.client_secret": &c.Kafka.SASL.ClientSecret,
		"registry.password":        &c.Registry.Password,
		"registry.token":           &c.Registry.Token,
		"http.token":               &c.HTTP.Token,
	}
}

// secretRules has the rule of each secret, by key. A rule returns what was expected, or nil.
var secretRules = map[string]func(secret string) error{
	"store.api_key":            asItIs("key"),
	"kafka.sasl.password":      oneLine,
	"kafka.sasl.client_secret": inHeader("secret"),
	"registry.password":        inHeader("password"),
	"registry.token":           asItIs("token"),
	"http.token": func(secret string) error {
		if !tokenShape.MatchString(secret) {
			return ruleError("expected 16 or more ASCII characters without spaces and control characters, such as " +
				"openssl rand -hex 32 prints")
		}
		return nil
	},
}

// noText names the usual origin of a secret with a control character.
const noText = ": is it half written, or in UTF-16?"

// inHeader is the rule of secrets that are sent in an HTTP header, in base64 or in a form. They must not have
// control characters (RFC 9110, 7617, 6749).
func inHeader(what string) func(secret string) error {
	return func(secret string) error {
		if strings.ContainsFunc(secret, unicode.IsControl) {
			return ruleError("expected a " + what + " of one line, without control characters" + noText)
		}
		return nil
	}
}

// asItIs is the rule of secrets that are sent in a header without encoding. Characters beyond ASCII have no
// agreed form there, and an invisible one comes from an editor or a web page.
func asItIs(what string) func(secret string) error {
	return func(secret string) error {
		if strings.ContainsFunc(secret, func(r rune) bool { return r > unicode.MaxASCII }) {
			return ruleError("expected a " + what + " of ASCII characters alone: was it copied along with others, " +
				"or is the file in another encoding?")
		}
		return inHeader(what)(secret)
	}
}

// oneLine is the rule of other passwords. All bytes but line breaks are the user's choice.
func oneLine(secret string) error {
	if strings.ContainsAny(secret, "\x00\r\n") {
		return ruleError("expected a password of one line, without NUL bytes" + noText)
	}
	return nil
}

// checkSecrets checks every secret by its rule.
func checkSecrets(c *Config, m *mistakes) {
	for key, secret := range c.rotated() {
		if rule := secretRules[key]; rule != nil && secret.IsSet() {
			if err := rule(secret.Get()); err != nil {
				m.value(key, err.Error())
			}
		}
	}
}

// follow starts to read the secrets that are in files again and again.
func (c *Config) follow(m *mistakes) {
	c.rotation = &rotation.Set{Hidden: c.hidden(m.values)}
	for key, secret := range c.rotated() {
		path, isFile := strings.CutPrefix(m.values.of(key).Text, secretFile)
		if !isFile {
			continue
		}
		follow := rotation.Follow
		if key == "http.token" {
			follow = rotation.FollowToken
		}
		followed, err := follow(c.rotation, key, path, secretRules[key])
		if err != nil { // it was valid a moment ago
			m.value(key, err.Error())
			continue
		}
		*secret = followed
	}
	c.followDSN(m)
}

// followDSN does the same for the DSN. The DSN, its password, or both may be in a file. The database client
// reports a change itself, because it also reads the certificates that belong to the DSN.
func (c *Config) followDSN(m *mistakes) {
	setting := m.values.of(keyDSN).Text
	given, _ := readSecret(setting) // it was read before, without error
	text := func() (string, error) { return given.Get(), nil }
	whole, isFile := strings.CutPrefix(setting, secretFile)
	if isFile {
		text = rotation.SecretFile(whole)
	}
	parsed, _ := dsn.Parse(given.Get()) // checkRules has parsed it
	path, hasFile := parsed.PasswordFile()
	if !isFile && !hasFile {
		return
	}
	inputs := []rotation.Input{text}
	if hasFile {
		inputs = append(inputs, rotation.SecretFile(path))
	}
	parse := func(texts []string) (string, error) {
		d, err := dsn.Parse(texts[0])
		if err != nil {
			return "", &rotation.FileError{Path: whole, Err: err}
		}
		if now, has := d.PasswordFile(); has != hasFile || has && now != path {
			return "", &rotation.FileError{Path: whole, Err: ruleError("the password stands in another place than " +
				"before, which takes a restart")}
		}
		text, password, from := texts[0], d.Value("password"), whole
		if hasFile {
			text, password, from = d.WithPassword(texts[1]), texts[1], path
		}
		if err := oneLine(password); err != nil {
			return "", &rotation.FileError{Path: from, Err: err}
		}
		hideDSN(c.rotation.Hidden, text)
		return text, nil
	}
	value, err := rotation.New(nil, keyDSN, parse, inputs...)
	if err != nil {
		m.value(keyDSN, err.Error())
		return
	}
	c.Postgres.DSN = rotation.FromValue(value)
}

// hidden returns the secrets in use. No output may show them.
func (c *Config) hidden(v *values) *rotation.Hidden {
	openly := []string{"storestream"}
	for _, e := range v.entries() {
		openly = append(openly, e.Key, e.Value)
	}
	database, _ := dsn.Parse(c.Postgres.DSN.Get()) // checkRules has parsed it; an empty one has no user
	users := []string{c.Registry.Username, c.Kafka.SASL.Username, c.Kafka.SASL.ClientID, database.Value("user")}
	for _, p := range c.proxies {
		users = append(users, p.user())
	}
	h := rotation.NewHidden(strings.Join(openly, "\n"), users...)
	for key, secret := range c.rotated() {
		h.Add(key, secret.Get())
	}
	h.Add("privacy.key", c.Privacy.Key.Get())
	hideDSN(h, c.Postgres.DSN.Get())
	for _, p := range c.proxies {
		p.hide(h)
	}
	return h
}

// hideDSN hides the secret parts of a DSN.
func hideDSN(h *rotation.Hidden, text string) {
	d, _ := dsn.Parse(text) // checkRules has parsed it
	h.Add(keyDSN, d.Value("password"))
	h.Add(keyDSN, d.Value("sslpassword"))
}
