package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// decode turns the texts into a Config. A value that is not of its key's type is a mistake and gives way to
// its default, so that the rules are held against everything else.
func decode(s *settings) *Config {
	for key, of := range s.byKey {
		if err := of.decode(of.text); err != nil {
			s.wrong(key, err.Error())
			_ = of.decode(of.standard)
		}
	}
	c := s.config
	c.Resources = map[string]Resource{}
	for name, r := range s.resources {
		c.Resources[name] = *r
	}
	c.Store.BaseURL = strings.TrimRight(c.Store.BaseURL, "/")
	var err error
	if c.Postgres.DSN, err = withPassword(c.Postgres.DSN); err != nil {
		s.wrong(keyDSN, err.Error())
	}
	return c
}

// decode turns text into the type that the key has. The error says what a value should have been, never what
// it was. Every layer gives text, a YAML file too. By YAML's own rules a day would be a time, 5 would be five
// nanoseconds, and yes a bool in one place only.
func (of *setting) decode(text string) (err error) {
	switch into := of.into.Addr().Interface().(type) {
	case *string:
		*into = text
	case *Secret:
		*into, err = readSecret(text)
		return err
	case *[]string:
		*into = parseList(text)
	case *bool:
		*into = text == "true"
		return expect(*into || text == "false", "true or false")
	case *time.Duration:
		*into, err = time.ParseDuration(text)
		return expect(err == nil, "a duration with its unit, such as 30s, 2m or 24h")
	case *time.Time:
		if text != "" {
			*into, err = time.Parse(time.DateOnly, text)
		}
		return expect(err == nil, "a day, such as 2026-01-31, or nothing for the earliest row")
	case *float64:
		*into, err = strconv.ParseFloat(text, 64)
		return expect(err == nil, "a number")
	default:
		n, err := strconv.ParseInt(text, 10, of.into.Type().Bits())
		of.into.SetInt(n)
		return expect(err == nil, "a whole number")
	}
	return nil
}

func expect(ok bool, what string) error {
	if ok {
		return nil
	}
	return errors.New("expected " + what)
}

// parseList splits at commas; spaces around an element do not count.
func parseList(s string) []string {
	list := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
