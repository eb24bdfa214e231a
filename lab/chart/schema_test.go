//go:build chart

package chart

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/schemas"
)

var update = flag.Bool("update", false, "write the part of values.schema.json that the program's keys make")

// object is a JSON object.
type object = map[string]any

// section is the schema of a section of the configuration.
func section(t reflect.Type) object {
	properties := object{}
	for f := range t.Fields() {
		switch {
		case !f.IsExported():
		case f.Anonymous:
			for name, schema := range section(f.Type)["properties"].(object) {
				properties[name] = schema
			}
		default:
			properties[f.Tag.Get("koanf")] = value(f)
		}
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties}
}

// value is the schema of what a key takes. No secret is to stand in a ConfigMap.
func value(f reflect.StructField) object {
	text := object{"type": "string"}
	switch zero := reflect.Zero(f.Type).Interface(); zero.(type) {
	case rotation.Secret:
		file := object{"type": "string", "pattern": "^(file:/.*)?$"}
		if f.Tag.Get("koanf") != "dsn" {
			return file
		}
		// Or keyword=value with the password in a file, or with none.
		return object{"type": "string", "anyOf": []any{object{"pattern": "^(file:/.*)?$"},
			object{"pattern": `\bpassword *= *'?file:/`}, object{"not": object{"pattern": "://|password"}}}}
	case schemas.Instant:
		return object{"type": "string", "pattern": "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"}
	case time.Duration, config.Size:
		return text
	case []string, map[string]string:
		return object{"type": "array", "items": text}
	case map[string]schemas.Policy:
		return object{"type": "object", "additionalProperties": text}
	case map[string]config.Resource:
		resources := object{}
		for _, d := range schemas.Declared() {
			resources[d.Name] = section(f.Type.Elem())
		}
		return object{"type": "object", "additionalProperties": false, "properties": resources}
	}
	switch f.Type.Kind() {
	case reflect.Struct:
		return section(f.Type)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int16, reflect.Int32:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	}
	return text
}

// configSchema is the schema of the value config: every key of storestream but http.listen, which is the
// chart's, and those that have to be there because the defaults mean this machine.
func configSchema() object {
	all := section(reflect.TypeFor[config.Config]())
	sections := all["properties"].(object)
	delete(sections["http"].(object)["properties"].(object), "listen")
	for name, key := range map[string]string{"store": "base_url", "kafka": "brokers", "registry": "url"} {
		sections[name].(object)["required"] = []any{key}
	}
	all["required"] = []any{"kafka", "registry", "store"}
	return all
}

func TestTheSchemaKnowsEveryKeyOfStorestream(t *testing.T) {
	file := filepath.Join(chartFolder, "values.schema.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole object
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	whole["properties"].(object)["config"] = configSchema()
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(whole); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(text, want.Bytes()) {
		return
	}
	if !*update {
		t.Fatal("values.schema.json does not know storestream's keys: go test ./chart -update writes it")
	}
	if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAMistakeInTheValuesIsRefused(t *testing.T) {
	for _, c := range []struct{ path, value, why string }{
		{"image", `""`, "image"},
		{"replica", `2`, "replica"},
		{"replicas", `"2"`, "replicas"},
		{"serviceMonitor.enable", `true`, "enable"},
		{"config.kafka.broker", `["kafka:9092"]`, "broker"},
		{"config.kafka.brokers", `"kafka:9092"`, "brokers"},
		{"config.http.listen", `":9090"`, "listen"},
		{"config.store", `{}`, "base_url"},
		{"config.poll.memory", `128`, "memory"},
		{"config.resources.order", `{}`, "order"},
		{"config.kafka.sasl", `{"password": "secret"}`, "password"},
		{"config.postgres.dsn", `"postgres://student_ro:secret@pooler:6432/store"`, "dsn"},
		{"config.postgres.dsn", `"host=pooler password=secret"`, "dsn"},
		{"resources.limits.memory", `"1G"`, "memory"},
		{"resources.limits.memory", `null`, "memory"},
		{"goMemLimit", `"512Mi"`, "goMemLimit"},
		{"fullResources", `6`, "fullResources"},
		{"verify.schedule", `"30 4 * *"`, "schedule"},
		{"check.enabled", `"yes"`, "enabled"},
		{"user", `0`, "user"},
		{"env.STORESTREAM_LOG__LEVEL", `"debug"`, "STORESTREAM_LOG__LEVEL"},
	} {
		values := valuesOf(t, "testdata/least.yaml")
		at, path := values, strings.Split(c.path, ".")
		for _, name := range path[:len(path)-1] {
			inner, ok := at[name].(object)
			if !ok {
				inner = object{}
				at[name] = inner
			}
			at = inner
		}
		var v any
		if err := json.Unmarshal([]byte(c.value), &v); err != nil {
			t.Fatal(err)
		}
		at[path[len(path)-1]] = v
		_, err := texts(load(t), values)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %s: expected an error that names %s, it is %v", c.path, c.value, c.why, err)
		}
	}
}
