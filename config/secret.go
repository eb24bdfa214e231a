package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// Secret is a value that no log, error or page may show: it prints as ******, in JSON too. string(s) is the value itself.
type Secret string

const (
	masked = "******"
	// secretFile before a path says that the secret is what the file holds.
	secretFile = "file:"
	// maxSecret bounds what is read from a secret's file, in bytes.
	maxSecret = 64 << 10
)

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// resolve reads the secret from its file if it names one. A newline at the file's end is not part of the secret.
func (s Secret) resolve() (Secret, error) {
	path, isFile := strings.CutPrefix(string(s), secretFile)
	if !isFile {
		return s, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fileError(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", fileError(err)
	case len(text) > maxSecret:
		return "", fmt.Errorf("the file is larger than %d bytes", maxSecret)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", errors.New("the file is empty")
	}
	return Secret(secret), nil
}

// fileError leaves the path out of err: the message that it becomes part of names it already.
func fileError(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// dsnPair is one keyword=value of a DSN of that form, the value quoted or not.
var dsnPair = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)`)

// dsnShown are the keywords whose values may be shown. Anything else may be a misspelled password.
var dsnShown = map[string]bool{"host": true, "hostaddr": true, "port": true, "user": true, "dbname": true, "database": true, "sslmode": true,
	"sslrootcert": true, "sslcert": true, "sslkey": true, "connect_timeout": true, "application_name": true, "passfile": true,
	"target_session_attrs": true}

// maskDSN shows of a DSN, in either of PostgreSQL's forms, what may be shown; of one that cannot be read, nothing.
func maskDSN(dsn string) string {
	if dsn == "" || strings.HasPrefix(dsn, secretFile) {
		return dsn
	}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return maskDSNURL(dsn)
	}
	if strings.TrimSpace(dsnPair.ReplaceAllString(dsn, "")) != "" {
		return masked
	}
	return dsnPair.ReplaceAllStringFunc(dsn, func(pair string) string {
		found := dsnPair.FindStringSubmatch(pair)
		if dsnShown[found[1]] || strings.HasPrefix(found[2], secretFile) {
			return pair
		}
		return found[1] + "=" + masked
	})
}

func maskDSNURL(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return masked
	}
	query := u.Query()
	for name := range query {
		if !dsnShown[name] {
			query.Set(name, masked)
		}
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "%2A", "*")
	return maskUserinfo(u)
}

// maskUserinfo writes u with its password hidden (url.URL.Redacted would write xxxxx, unlike all other masks).
func maskUserinfo(u *url.URL) string {
	if _, has := u.User.Password(); !has {
		return u.String()
	}
	shown := *u
	shown.User = url.UserPassword(u.User.Username(), "storestream-mask")
	return strings.Replace(shown.String(), ":storestream-mask@", ":"+masked+"@", 1)
}

// withPassword reads the password of a keyword DSN from its file where it is given as password=file:/path.
func withPassword(dsn Secret) (Secret, error) {
	for _, found := range dsnPair.FindAllStringSubmatchIndex(string(dsn), -1) {
		given := strings.Trim(string(dsn[found[4]:found[5]]), "'")
		if dsn[found[2]:found[3]] != "password" || !strings.HasPrefix(given, secretFile) {
			continue
		}
		password, err := Secret(given).resolve()
		if err != nil {
			return "", fmt.Errorf("%s: %w", given, err)
		}
		quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(string(password)) + "'"
		return dsn[:found[4]] + Secret(quoted) + dsn[found[5]:], nil
	}
	return dsn, nil
}
