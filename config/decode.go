package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"

	"github.com/storestream/storestream/internal/rotation"
)

// decode turns the texts into a Config. A value of the wrong type is a mistake, and its default replaces it,
// so that the rules can check all other values. (mapstructure drops a whole resource for one field.)
func decode(v *values, m *mistakes) *Config {
	c, err := unmarshal(v)
	if err != nil {
		typeMistakes(err, m)
		v.lay(v.defaults(slices.Collect(maps.Keys(m.broken))...))
		c, _ = unmarshal(v)
	}
	c.Store.BaseURL = strings.TrimRight(c.Store.BaseURL, "/")
	text, err := readDSN(v.of(keyDSN).Text)
	if err != nil {
		m.value(keyDSN, err.Error())
	}
	c.Postgres.DSN = rotation.Literal(text)
	return c
}

func unmarshal(v *values) (*Config, error) {
	c := &Config{}
	err := v.koanf.UnmarshalWithConf("", c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: c, TagName: "koanf", DecodeHook: mapstructure.DecodeHookFuncType(parse)}})
	return c, err
}

// typeMistakes finds the keys in the tree of errors that mapstructure returns.
func typeMistakes(err error, m *mistakes) {
	switch e := err.(type) { //nolint:errorlint // this walks the tree itself, one step at a time
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			typeMistakes(inner, m)
		}
	case *mapstructure.DecodeError:
		m.value(strings.NewReplacer("[", ".", "]", "").Replace(e.Name()), e.Unwrap().Error())
	default:
		if inner := errors.Unwrap(err); inner != nil {
			typeMistakes(inner, m)
		} else {
			m.add(Mistake{Key: "configuration", Rule: err.Error()})
		}
	}
}

// ruleError says what was expected. It never shows the value.
type ruleError string

func (e ruleError) Error() string { return string(e) }

// parse is mapstructure's decode hook. It turns a setting into the type of its key. Every layer gives text,
// also a YAML file: by YAML's own rules a day would be a time, 5 would be five nanoseconds, and yes would be
// a bool in one place only.
func parse(_, to reflect.Type, data any) (any, error) {
	given, ok := data.(setting)
	if !ok {
		return data, nil // a section
	}
	s := given.Text
	switch reflect.Zero(to).Interface().(type) {
	case rotation.Secret:
		secret, err := readSecret(s)
		return rotation.Literal(secret), err
	case time.Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return nil, ruleError("expected a duration with its unit, such as 30s, 2m or 24h")
		}
		return d, nil
	case Size:
		return parseSize(s)
	case time.Time:
		return parseDay(s)
	case []string:
		return parseList(s), nil
	case Policies:
		return parsePolicies(s)
	}
	return parseScalar(to, s)
}

// leadingZero matches a number that YAML 1.1 reads as octal: 010 is eight there, and ten elsewhere.
var leadingZero = regexp.MustCompile(`^[+-]?0[0-9]`)

const errLeadingZero = ruleError("expected a number without a leading 0")

func parseScalar(to reflect.Type, s string) (any, error) {
	kind := to.Kind()
	if kind != reflect.String && leadingZero.MatchString(s) {
		return nil, errLeadingZero
	}
	switch kind {
	case reflect.Int, reflect.Int32, reflect.Int16:
		n, err := strconv.ParseInt(s, 10, to.Bits())
		if err != nil {
			return nil, ruleError("expected a whole number")
		}
		return reflect.ValueOf(n).Convert(to).Interface(), nil
	case reflect.Float64:
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, ruleError("expected a number")
		}
		return x, nil
	case reflect.Bool:
		if s != "true" && s != "false" {
			return nil, ruleError("expected true or false")
		}
		return s == "true", nil
	case reflect.String:
		return s, nil
	}
	return nil, fmt.Errorf("a %s cannot be read from text", to) // a new type in Config that parse does not know
}

func parseDay(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return time.Time{}, ruleError("expected a day, such as 2026-01-31, or nothing for the earliest row")
	}
	return t, nil
}

// parseList splits at commas. It drops spaces around an element.
func parseList(s string) []string {
	list := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
