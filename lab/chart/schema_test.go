//go:build chart

package chart

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/config"
)

var update = flag.Bool("update", false, "write the part of values.schema.json that the program's keys make")

// object is a JSON object.
type object = map[string]any

// forTheChart makes s, the schema of key, that of a value of the chart. Helm takes null out of values before
// it looks at them, and no secret is to stand in a ConfigMap.
func forTheChart(key string, s object) object {
	if types, ok := s["type"].([]any); ok {
		isList := slices.Contains(types, any("array")) // and no text with commas
		types = slices.DeleteFunc(types, func(t any) bool { return t == "null" || isList && t == "string" })
		if s["type"] = types; len(types) == 1 {
			s["type"] = types[0]
		}
	}
	if values, ok := s["enum"].([]any); ok {
		s["enum"] = slices.DeleteFunc(values, func(v any) bool { return v == nil })
	}
	switch file := "^(file:/.*)?$"; {
	case key == "postgres.dsn": // or keyword=value with the password in a file, or with none
		s["anyOf"] = []any{object{"pattern": file}, object{"pattern": `\bpassword *= *'?file:/`},
			object{"not": object{"pattern": "://|password"}}}
	case s["writeOnly"] == true:
		s["pattern"] = file
	}
	properties, _ := s["properties"].(object)
	for name, schema := range properties {
		properties[name] = forTheChart(strings.TrimPrefix(key+"."+name, "."), schema.(object))
	}
	return s
}

// configSchema is the schema of the value config: every key of storestream but http.listen, which is the
// chart's, and those that have to be there because the defaults mean this machine.
func configSchema(t *testing.T) object {
	t.Helper()
	var all object
	if err := json.Unmarshal([]byte(config.JSONSchema), &all); err != nil {
		t.Fatal(err)
	}
	forTheChart("", all)
	delete(all, "$schema")
	delete(all, "title")
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
	whole["properties"].(object)["config"] = configSchema(t)
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
