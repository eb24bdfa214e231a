package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/schemas"
)

var update = flag.Bool("update", false, "write schema.json")

// object is a JSON object.
type object = map[string]any

// unsigned is the form of a number in a duration or a size. None may be below zero.
const unsigned = `([0-9]+\.?[0-9]*|\.[0-9]+)`

// patterns has the form of each type that YAML gives as text. Load also takes a size without a unit, in
// bytes. This is seldom what its writer meant.
var patterns = map[reflect.Type]string{
	reflect.TypeFor[time.Duration]():   `(` + unsigned + `(ns|us|µs|μs|ms|s|m|h))+`,
	reflect.TypeFor[Size]():            unsigned + ` *([KMGTPkmgtp][Ii]?[Bb]?|[Bb])`,
	reflect.TypeFor[schemas.Instant](): `[0-9]{4}-[0-9]{2}-[0-9]{2}`,
}

// schemaOf returns the schema of what key takes. Every key takes null, which does not set it.
func schemaOf(key string, leaf reflect.StructField) object {
	ofType := func(types ...string) object { return object{"type": append(types, "null")} }
	one := leaf.Tag.Get("one")
	if resource, ok := strings.CutPrefix(key, "resources."); ok && strings.HasSuffix(key, ".source") {
		one = "|" + REST
		for _, d := range schemas.Declared() {
			if d.Table != "" && resource == d.Name+".source" {
				one += "|" + Postgres
			}
		}
	}
	values := []any{}
	for value := range strings.SplitSeq(one, "|") {
		values = append(values, value)
	}
	scalar := object{"type": []string{"string", "number", "boolean"}}
	text := ofType("string")
	if one != "" {
		text["enum"] = append(slices.Clone(values), nil)
	}
	if pattern := patterns[leaf.Type]; pattern != "" {
		text["pattern"] = "^(" + pattern + ")$"
		if leaf.Tag.Get("default") == "" {
			text["pattern"] = "^(" + pattern + ")?$"
		}
	}
	switch reflect.Zero(leaf.Type).Interface().(type) {
	case rotation.Secret:
		text["writeOnly"] = true
	case []string: // or text with commas between the elements
		list := ofType("array", "string")
		list["items"] = object{"type": "string"}
		if one != "" {
			list["items"] = object{"enum": values}
		}
		return list
	case map[string]string:
		pairs := ofType("object", "array", "string")
		pairs["additionalProperties"], pairs["items"] = scalar, object{"type": "string", "pattern": "="}
		return pairs
	case map[string]schemas.Policy:
		policies := ofType("object", "array", "string")
		names := "^(" + strings.Join(schemas.Names(), "|") + `)\.[A-Za-z_][A-Za-z0-9_]*$`
		policies["propertyNames"] = object{"pattern": names}
		policies["additionalProperties"] = object{"enum": schemas.Policies}
		policies["items"] = object{"type": "string", "pattern": "="}
		return policies
	case bool:
		return ofType("boolean")
	case float64:
		return bounded(ofType("number"), leaf.Tag)
	case int16, int32:
		return bounded(ofType("integer"), leaf.Tag)
	}
	if key == "kafka.topic_prefix" {
		text["pattern"] = topicPrefix.String()
	}
	return text
}

// bounded adds the bounds of a number.
func bounded(schema object, tag reflect.StructTag) object {
	if least := tag.Get("least"); least != "" {
		schema["minimum"] = json.Number(least)
	}
	if or := tag.Get("or"); or != "" {
		schema["anyOf"] = []object{{"minimum": schema["minimum"]}, {"const": json.Number(or)}}
		delete(schema, "minimum")
	}
	return schema
}

var (
	exampleKey  = regexp.MustCompile(`^( *)([a-z_]+):[^#]*?(?:# *(.*))?$`)
	exampleMore = regexp.MustCompile(`^ {8,}# *(.*)$`)
	ofResources = regexp.MustCompile(`^# {3}([a-z]+): +(.*)$`)
	moreOfThese = regexp.MustCompile(`^# {13}(.*)$`)
)

// exampleWords returns what example.yaml says of each key. What it says of a key of every resource is below
// the key's own name.
func exampleWords(example string) map[string]string {
	words, path, resourceKey := map[string]string{}, []string{}, ""
	for line := range strings.Lines(example) {
		line = strings.TrimRight(line, "\n")
		if m := exampleKey.FindStringSubmatch(line); m != nil {
			path = append(path[:min(len(m[1])/2, len(path))], m[2])
			words[strings.Join(path, ".")] = m[3]
		} else if m := exampleMore.FindStringSubmatch(line); m != nil {
			words[strings.Join(path, ".")] += " " + m[1]
		} else if m := ofResources.FindStringSubmatch(line); m != nil {
			resourceKey = m[1]
			words[resourceKey] = m[2]
		} else if m := moreOfThese.FindStringSubmatch(line); m != nil {
			words[resourceKey] += " " + m[1]
		}
	}
	return words
}

// wholeSchema returns the schema of a configuration file.
func wholeSchema(t *testing.T) object {
	t.Helper()
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defaults object
	if err := yaml.Unmarshal(example, &defaults); err != nil {
		t.Fatal(err)
	}
	words, l := exampleWords(string(example)), newLoader()
	section := func() object {
		return object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": object{}}
	}
	whole := section()
	whole["$schema"], whole["title"] = "https://json-schema.org/draft/2020-12/schema", "storestream.yaml"
	for _, key := range l.names {
		at, value := whole, any(defaults)
		path := strings.Split(key, ".")
		for _, name := range path[:len(path)-1] {
			at, value = at["properties"].(object)[name].(object), value.(object)[name]
		}
		name, schema := path[len(path)-1], section()
		about := words[key]
		if leaf, isLeaf := l.leaves[key]; isLeaf {
			schema = schemaOf(key, leaf)
			schema["default"] = value.(object)[name]
			if path[0] == "resources" {
				about = words[name]
			}
			if about == "" {
				t.Errorf("example.yaml does not say what %s is", key)
			}
		}
		if about != "" {
			schema["description"] = about
		}
		at["properties"].(object)[name] = schema
	}
	return whole
}

func TestTheSchemaHasEveryKeyOfTheConfiguration(t *testing.T) {
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(wholeSchema(t)); err != nil {
		t.Fatal(err)
	}
	switch {
	case JSONSchema == want.String():
	case !*update:
		t.Fatal("schema.json is not what Config and example.yaml say: go test ./config -update writes it")
	default:
		if err := os.WriteFile("schema.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// If the schema takes less than Load, an editor marks what is good. If it takes more, mistakes stay unmarked.
func TestThePatternsOfTheSchemaTakeWhatLoadTakes(t *testing.T) {
	const near = `([0-9]{0,2}[.]?[0-9]{0,2} ?(ns|us|µs|ms|s|m|h|[KMGkm]i?[Bb]?|B|b|x)){0,2}[0-9]?`
	for of, pattern := range patterns {
		if of == reflect.TypeFor[schemas.Instant]() {
			continue // 2026-02-31 is one to the pattern
		}
		whole := regexp.MustCompile("^(" + pattern + ")$")
		rapid.Check(t, func(t *rapid.T) {
			text := strings.TrimRight(rapid.StringMatching(near).Draw(t, "text"), " ")
			_, err := parse(text, of)
			hasUnit := strings.ContainsFunc(text, unicode.IsLetter)
			if takes := whole.MatchString(text); hasUnit && takes != (err == nil) {
				t.Fatalf("%s %q: the schema takes it: %v, Load says %v", of, text, takes, err)
			}
		})
	}
}
