package config

import (
	"fmt"
	"strings"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// maskDSN shows of a DSN what may be shown; of one that cannot be understood, nothing.
func maskDSN(text string) string {
	if text == "" || strings.HasPrefix(text, secretFile) {
		return text
	}
	d, err := dsn.Parse(text)
	if err != nil {
		return rotation.Mask
	}
	return d.String()
}

// withPassword reads the password of a keyword DSN from its file where it is given as password=file:/path.
func withPassword(text rotation.Secret) (rotation.Secret, error) {
	d, err := dsn.Parse(text.Get())
	if err != nil {
		return text, nil //nolint:nilerr // the rules say so, with what else is wrong
	}
	path, isFile := d.PasswordFile()
	if !isFile {
		return text, nil
	}
	password, err := readSecret(secretFile + path)
	if err == nil {
		err = oneLine(password.Get())
	}
	if err != nil {
		return text, fmt.Errorf("%s: %w", secretFile+path, err)
	}
	return rotation.Literal(d.WithPassword(password.Get())), nil
}

// checkDSN says whether pgx can connect by a DSN.
func checkDSN(text rotation.Secret) error {
	d, err := dsn.Parse(text.Get())
	if err == nil {
		err = oneLine(d.Value("password"))
	}
	if err == nil {
		_, err = d.Config()
	}
	return err
}
