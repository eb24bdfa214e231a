package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/schemas"
)

// forms says how a value of each type is written. Numbers that are not here are whole.
var forms = map[reflect.Type]string{
	reflect.TypeFor[time.Duration]():             "a duration with its unit, such as 30s, 2m or 24h",
	reflect.TypeFor[Size]():                      "a number of bytes with its unit, such as 64MiB or 2GiB",
	reflect.TypeFor[schemas.Instant]():           "a day, such as 2026-01-31, or nothing for the earliest row",
	reflect.TypeFor[bool]():                      "true or false",
	reflect.TypeFor[float64]():                   "a number",
	reflect.TypeFor[map[string]string]():         "name=value between commas, each name once",
	reflect.TypeFor[map[string]schemas.Policy](): "resource.field=policy between commas, each field once",
}

// read is mapstructure's decode hook. It turns a setting into the value of its key, and checks it by the tags
// of the key's field. Every layer gives text, also a YAML file: by YAML's own rules a day would be a time, 5
// would be five nanoseconds, and yes would be a bool in one place only. Mistakes never show a secret.
func (l *loader) read(_, to reflect.Type, data any) (any, error) {
	s, ok := data.(setting)
	if !ok {
		return data, nil // a section
	}
	var value any
	var err error
	if to == reflect.TypeFor[rotation.Secret]() {
		value, err = l.secret(s.Key, s.Text)
		l.secrets[s.Key] = value.(rotation.Secret)
	} else if value, err = parse(s.Text, to); err != nil {
		err = errors.New("expected " + cmp.Or(forms[to], "a whole number"))
	}
	if err == nil {
		err = checkTags(value, s.Text, l.leaves[s.Key])
	}
	if err != nil {
		l.mistake(s.Key, err.Error())
		value = reflect.Zero(to).Interface()
	}
	return value, nil
}

// checkTags checks a value by the tags of its field. one lists the allowed values, of a list those of each
// element. least and most bound a value, and or is a value that is allowed besides.
func checkTags(value any, text string, field reflect.StructField) error {
	if one := field.Tag.Get("one"); one != "" {
		given := []string{text}
		if list, ok := value.([]string); ok {
			given = list
		}
		for _, text := range given {
			if !slices.Contains(strings.Split(one, "|"), text) {
				return errors.New("expected " + strings.TrimPrefix(strings.ReplaceAll(one, "|", " or "), " or "))
			}
		}
	}
	least, most, or := field.Tag.Get("least"), field.Tag.Get("most"), field.Tag.Get("or")
	amount := func(text string) float64 {
		value, _ := parse(text, field.Type) // a tag has no mistake
		return number(value)
	}
	if least == "" || text == or ||
		number(value) >= amount(least) && (most == "" || number(value) <= amount(most)) {
		return nil
	}
	rule := "expected " + least + " or more"
	if most != "" {
		rule = "expected " + least + " to " + most
	}
	if or != "" {
		rule += ", or " + or
	}
	return errors.New(rule)
}

// number returns a number, duration or size.
func number(value any) float64 {
	if v := reflect.ValueOf(value); !v.CanInt() {
		return v.Float()
	}
	return float64(reflect.ValueOf(value).Int())
}

// parse turns the text of a value into a type that a key may have, except a secret. Its errors may show the
// value.
func parse(text string, to reflect.Type) (any, error) {
	switch reflect.Zero(to).Interface().(type) {
	case time.Duration:
		return time.ParseDuration(text)
	case Size:
		n, err := humanize.ParseBytes(text)
		return Size(min(n, math.MaxInt64)), err
	case schemas.Instant:
		if text == "" {
			return schemas.MinInstant, nil
		}
		day, err := time.Parse(time.DateOnly, text)
		return schemas.InstantOf(day), err
	case []string:
		return elements(text), nil
	case string:
		return text, nil
	}
	if to.Kind() == reflect.Map {
		pairs := reflect.MakeMap(to)
		for _, one := range elements(text) {
			name, value, ok := strings.Cut(one, "=")
			key := reflect.ValueOf(strings.TrimSpace(name))
			if !ok || pairs.MapIndex(key).IsValid() {
				return nil, errors.New("no value, or two")
			}
			pairs.SetMapIndex(key, reflect.ValueOf(strings.TrimSpace(value)).Convert(to.Elem()))
		}
		return pairs.Interface(), nil
	}
	// JSON's numbers have no leading 0, which YAML 1.1 reads as octal. JSON takes null for any type, and it
	// would leave true or a number at its zero value.
	value := reflect.New(to)
	if text == "null" || json.Unmarshal([]byte(text), value.Interface()) != nil {
		return nil, errors.New("not of its type")
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
