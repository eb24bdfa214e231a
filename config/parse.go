package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// ruleError says what a value should have been, never what it was.
type ruleError string

func (e ruleError) Error() string { return string(e) }

// parse turns the text of a value into the type that its key has: mapstructure's decode hook. Every layer gives text, a YAML file
// too: decoded by YAML's own rules a day would be a time, 5 would be five nanoseconds, and yes a bool in one place only.
func parse(from, to reflect.Type, data any) (any, error) {
	if from.Kind() != reflect.String {
		return data, nil
	}
	s := data.(string)
	switch reflect.Zero(to).Interface().(type) {
	case Secret:
		return Secret(s), nil
	case time.Duration:
		return parseDuration(s)
	case time.Time:
		return parseDay(s)
	case []string:
		return parseList(s), nil
	}
	return parseScalar(to, s)
}

func parseScalar(to reflect.Type, s string) (any, error) {
	switch to.Kind() {
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

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, ruleError("expected a duration with its unit, such as 30s, 2m or 24h")
	}
	return d, nil
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
