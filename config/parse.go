package config

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/schemas"
)

// forms says how a value of each type is written. Numbers that are not here are whole.
var forms = map[reflect.Type]string{
	reflect.TypeFor[time.Duration](): "a duration with its unit, such as 30s, 2m or 24h",
	reflect.TypeFor[Size]():          "a number of bytes with its unit, such as 64MiB or 2GiB",
	reflect.TypeFor[time.Time]():     "a day, such as 2026-01-31, or nothing for the earliest row",
	reflect.TypeFor[bool]():          "true or false",
	reflect.TypeFor[float64]():       "a number",
	reflect.TypeFor[Policies]():      "resource.field=policy between commas, each field once",
}

// parse is mapstructure's decode hook. It turns a setting into the type of its key. Every layer gives text,
// also a YAML file: by YAML's own rules a day would be a time, 5 would be five nanoseconds, and yes would be
// a bool in one place only. Its errors never show the value.
func parse(_, to reflect.Type, data any) (any, error) {
	given, ok := data.(setting)
	if !ok {
		return data, nil // a section
	}
	value, err := parseText(given.Text, to)
	if form := forms[to]; err != nil && form != "" {
		err = errors.New("expected " + form)
	}
	return value, err
}

func parseText(text string, to reflect.Type) (any, error) {
	switch reflect.Zero(to).Interface().(type) {
	case rotation.Secret:
		secret, err := readSecret(text)
		return rotation.Literal(secret), err
	case time.Duration:
		return time.ParseDuration(text)
	case Size:
		n, err := humanize.ParseBytes(text)
		return Size(min(n, math.MaxInt64)), err
	case time.Time:
		if text == "" {
			return time.Time{}, nil
		}
		return time.Parse(time.DateOnly, text)
	case []string:
		return elements(text), nil
	case Policies:
		policies := Policies{}
		for _, one := range elements(text) {
			name, policy, ok := strings.Cut(one, "=")
			name = strings.TrimSpace(name)
			if _, twice := policies[name]; !ok || twice {
				return nil, errors.New("no policy, or two")
			}
			policies[name] = schemas.Policy(strings.TrimSpace(policy))
		}
		return policies, nil
	case string:
		return text, nil
	}
	// JSON's numbers have no leading 0, which YAML 1.1 reads as octal. JSON takes null for any type, and it
	// would leave true or a number at its zero value.
	value := reflect.New(to)
	if text == "null" || json.Unmarshal([]byte(text), value.Interface()) != nil {
		return nil, errors.New("expected a whole number")
	}
	return value.Elem().Interface(), nil
}

// elements splits at commas. It drops spaces around an element, and empty ones.
func elements(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
