package config

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/schemas"
)

// paces are the defaults of a resource by where it is read from. A database answers "what is new" from an
// index, the service only with whole days.
var paces = map[string]map[string]string{
	Postgres: {"source": Postgres, "interval": "1s", "overlap": "2m"},
	REST:     {"source": REST, "interval": "30s", "overlap": "5m"},
}

// complete turns resources whose database is not there to REST, and gives each the interval and overlap of
// the source that it is really read from. Without a DSN a value that equals PostgreSQL's default counts as
// not set: a copy of example.yaml has every default written out, and nobody wants whole days over REST every
// second. Whoever does says `source: rest`.
func complete(s *settings) {
	for _, d := range schemas.Declared() {
		path, from := "resources."+d.Name+".", fromDefault
		source := s.byKey[path+"source"].text
		fallback := source == Postgres && d.Table != "" && s.byKey[keyDSN].text == ""
		if fallback {
			source, from = REST, "because postgres.dsn is empty"
			s.set(path+"source", source, from)
		}
		for _, name := range []string{"interval", "overlap"} {
			given := s.byKey[path+name]
			unset := given.from == fromDefault || fallback && sameDuration(given.text, paces[Postgres][name])
			if source == REST && unset {
				given.text, given.from = paces[REST][name], from
			}
		}
	}
}

func sameDuration(a, b string) bool {
	x, err := time.ParseDuration(a)
	y, _ := time.ParseDuration(b)
	return err == nil && x == y
}

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
