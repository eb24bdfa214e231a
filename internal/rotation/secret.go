package rotation

import (
	"errors"
	"fmt"
	"strings"
)

// Secret is a value that no log, error or page may show: it prints as ******, in JSON too. The zero value is
// none. One that stands in a file is what the file holds at the moment that somebody asks for it.
type Secret struct {
	literal string
	value   *Value[string] // nil: literal is the secret
}

const (
	// Mask stands for what may not be shown.
	Mask = "******"
	// maxSecret bounds a secret's length, in bytes.
	maxSecret = 64 << 10

	byteOrderMark = "\ufeff"
)

// Literal is a secret that does not change; "": none.
func Literal(text string) Secret { return Secret{literal: text} }

// FromValue is a secret that v holds.
func FromValue(v *Value[string]) Secret { return Secret{value: v} }

// Follow is the secret of a setting that stands in a file, where it keeps rule (nil: any does). set may be
// nil.
func Follow(set *Set, setting, path string, rule func(secret string) error) (Secret, error) {
	v, err := New(set, setting, func(texts []string) (string, error) {
		if rule != nil {
			if err := rule(texts[0]); err != nil {
				return "", &FileError{path, err}
			}
		}
		if set != nil {
			set.Hidden.Add(setting, texts[0])
		}
		return texts[0], nil
	}, SecretFile(path))
	return Secret{value: v}, err
}

// FollowToken is Follow for a secret that others show to be let in. While its file cannot be used, the token
// has to be refused, because the old one may have been revoked. So compare with Current, and refuse on its
// error.
func FollowToken(set *Set, setting, path string, rule func(secret string) error) (Secret, error) {
	s, err := Follow(set, setting, path, rule)
	if err == nil {
		s.value.admits = true
	}
	return s, err
}

// SecretFile is the secret in a file. A newline at the file's end is not part of it, and blanks
// alone are none.
func SecretFile(path string) Input {
	read := File(path)
	return func() (string, error) {
		text, err := read()
		if err != nil {
			return "", err
		}
		secret := strings.TrimRight(text, "\r\n")
		switch {
		case strings.TrimSpace(secret) == "":
			return "", &FileError{path, errors.New("the file is empty")}
		case strings.HasPrefix(text, byteOrderMark): // some editors write one, and it would be sent along
			return "", &FileError{path, errors.New("the file begins with a byte order mark: save it without one")}
		case len(text) > maxSecret:
			return "", &FileError{path, fmt.Errorf("the file is larger than %d bytes", maxSecret)}
		}
		return secret, nil
	}
}

// IsSet says whether there is one.
func (s Secret) IsSet() bool { return s != Secret{} }

// Get is the secret itself, as it is now.
func (s Secret) Get() string {
	secret, _ := s.Current()
	return secret
}

// Current is Get, with the reason where its file cannot be used now.
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
