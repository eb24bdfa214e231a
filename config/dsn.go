package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// dsnPair is one keyword=value of a DSN of that form, the value quoted or not.
var dsnPair = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)`)

// dsnShown are the keywords whose values may be shown. Anything else may be a misspelled password.
var dsnShown = []string{"host", "hostaddr", "port", "user", "dbname", "database",
	"sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name", "passfile",
	"target_session_attrs"}

// maskDSN shows of a DSN, in either of PostgreSQL's forms, what may be shown; of one that cannot be read,
// nothing.
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
		if slices.Contains(dsnShown, found[1]) || strings.HasPrefix(found[2], secretFile) {
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
		if !slices.Contains(dsnShown, name) {
			query.Set(name, masked)
		}
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "%2A", "*")
	return maskUserinfo(u)
}

// maskUserinfo writes u with its password hidden (url.URL.Redacted would write xxxxx, unlike all other
// masks).
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
		password, err := readSecret(given)
		if err != nil {
			return dsn, fmt.Errorf("%s: %w", given, err)
		}
		quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(string(password)) + "'"
		return dsn[:found[4]] + Secret(quoted) + dsn[found[5]:], nil
	}
	return dsn, nil
}
