package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Secret is a value that no log, error or page may show: it prints as ******, in JSON too. string(s) is the
// value itself.
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

// readSecret is the secret that text gives, or names a file of. A newline at the file's end is not part of
// the secret.
func readSecret(text string) (Secret, error) {
	path, isFile := strings.CutPrefix(text, secretFile)
	if !isFile {
		return Secret(text), nil
	}
	secret, err := readBounded(path)
	if err != nil {
		return "", fmt.Errorf("the secret cannot be read from its file: %w", err)
	}
	return secret, nil
}

func readBounded(path string) (Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fileError(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", fileError(err)
	case len(text) > maxSecret:
		return "", fmt.Errorf("the file is larger than %d bytes", maxSecret)
	case secret == "":
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
