package config

import (
	"fmt"
	"strings"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// readDSN returns the DSN in setting, or in the file that setting names. A password in a file of its own is
// filled in. The DSN is one by which pgx can connect.
func readDSN(setting string) (string, error) {
	text := setting
	path, isFile := strings.CutPrefix(setting, secretFile)
	if isFile {
		var err error
		if text, err = rotation.SecretFile(path)(); err != nil {
			return "", err
		}
	}
	d, err := dsn.Parse(text)
	passwords, apart := d.PasswordFile()
	if err == nil && apart {
		d["password"], err = rotation.SecretFile(passwords)()
	}
	if err == nil {
		if err = checkSecret(keyDSN, d["password"]); err != nil && apart {
			err = fmt.Errorf("%s: %w", passwords, err)
		}
	}
	if err == nil {
		_, err = d.Config()
	}
	if isFile && err != nil {
		err = fmt.Errorf("the content of file %s: %w", path, err)
	}
	return d.Text(), err
}

// maskDSN returns a DSN without its secrets. If it cannot parse the DSN, it masks all of it.
func maskDSN(text string) string {
	if text == "" || strings.HasPrefix(text, secretFile) {
		return text
	}
	d, err := dsn.Parse(text)
	if err == nil {
		_, err = d.Config()
	}
	if err != nil {
		return rotation.Mask
	}
	return d.String()
}
