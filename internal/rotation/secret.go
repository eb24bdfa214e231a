package rotation

import (
	"errors"
	"io/fs"
	"strings"
)

// Mask stands for what may not be shown.
const Mask = "******"

// Secret is a value that no log, error or page may show: it prints as ******, in JSON too. The zero value is
// no secret. A secret in a file is read again each time that it is used.
type Secret struct {
	literal string
	value   *Value[string] // nil: literal is the secret
}

// Literal is a secret that does not change. "" is no secret.
func Literal(text string) Secret { return Secret{literal: text} }

// FromValue is the secret in v.
func FromValue(v *Value[string]) Secret { return Secret{value: v} }

// Follow is the secret of a setting in a file, if it keeps rule. rule and set may be nil. While its file is
// unusable, a secret that lets others in has to be refused, because the old one may have been revoked. So
// compare with Current, and refuse on its error.
func Follow(set *Set, setting, path string, rule func(secret string) error) (Secret, error) {
	v, err := New(set, setting, func(texts []string) (string, error) {
		if rule != nil {
			if err := rule(texts[0]); err != nil {
				return "", &fs.PathError{Op: "read", Path: path, Err: err}
			}
		}
		if set != nil {
			set.Hidden.Add(setting, texts[0])
		}
		return texts[0], nil
	}, SecretFile(path))
	return Secret{value: v}, err
}

// SecretFile is the secret in a file. A newline at the file's end is not part of it, and blanks alone are no
// secret.
func SecretFile(path string) Input {
	return func() (string, error) {
		text, err := File(path)()
		if err == nil && strings.TrimSpace(text) == "" {
			err = &fs.PathError{Op: "read", Path: path, Err: errors.New("the file is empty")}
		}
		return strings.TrimRight(text, "\r\n"), err
	}
}

// IsSet reports whether there is one.
func (s Secret) IsSet() bool { return s != Secret{} }

// Get returns the present secret.
func (s Secret) Get() string {
	secret, _ := s.Current()
	return secret
}

// Current is Get. A non-nil error means that its file is unusable and the secret is the last good one.
func (s Secret) Current() (string, error) {
	if s.value == nil {
		return s.literal, nil
	}
	return s.value.Current()
}

// String hides the secret.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return Mask
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
