package contracts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/storestream/storestream/config"
)

// page is what a file of this repository says.
func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfigurationsAreValidByTheSchemaAndMistakesAreNot(t *testing.T) {
	schema, err := Compile(config.JSONSchema)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"config/example.yaml": page(t, "config/example.yaml"), "an empty file": "",
		"a section without keys": "kafka:\n", "a day": "resources: {orders: {start: 2026-01-31}}",
		"text":  "kafka: {brokers: 'kafka-1:9092,kafka-2:9092'}",
		"pairs": "kafka: {topic_settings: {segment.bytes: 5242880}}\nprivacy: {fields: [users.email=drop]}"}
	marked := regexp.MustCompile("<!-- (configuration|status port) -->\n```yaml\n(?s:(.*?))```\n")
	for _, block := range marked.FindAllStringSubmatch(page(t, "docs/deploying.md"), -1) {
		good["docs/deploying.md, "+block[1]] = block[2]
	}
	if len(good) != 8 {
		t.Errorf("docs/deploying.md has %d configurations, expected two", len(good)-6)
	}
	for name, text := range good {
		if err := Validate(schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, key := range map[string]string{
		"log: {lvl: debug}":                             "/log",
		"kafak: {brokers: a:9092}":                      "kafak",
		"resources: {order: {enabled: true}}":           "/resources",
		"store: {request_timeout: 30}":                  "/store/request_timeout",
		"store: {request_timeout: 30sec}":               "/store/request_timeout",
		"resources: {users: {interval: -1s}}":           "/resources/users/interval",
		"resources: {users: {start: yesterday}}":        "/resources/users/start",
		"resources: {users: {source: postgres}}":        "/resources/users/source",
		"poll: {memory: 128}":                           "/poll/memory",
		"log: {level: trace}":                           "/log/level",
		"kafka: {compression: brotli}":                  "/kafka/compression",
		"kafka: {partitions: 0}":                        "/kafka/partitions",
		"kafka: {replication_factor: 0}":                "/kafka/replication_factor",
		"http: {show_rows: 'yes'}":                      "/http/show_rows",
		"security: {allow_plaintext: [redis]}":          "/security/allow_plaintext/0",
		"privacy: {fields: {users.email: encrypt}}":     "/privacy/fields/users.email",
		"privacy: {fields: {customers.email: hash}}":    "/privacy/fields",
		"kafka: {topic_settings: [segment.bytes: 1]}":   "/kafka/topic_settings/0",
		"kafka: {topic_prefix: 'our topics'}":           "/kafka/topic_prefix",
		"registry: {url: [http://127.0.0.1:8081]}":      "/registry/url",
		"postgres: {dsn: {password: file:/etc/secret}}": "/postgres/dsn",
	} {
		if err := Validate(schema, text); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: expected a mistake at %s, got %v", text, key, err)
		}
		file := filepath.Join(t.TempDir(), "storestream.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Input{File: file})
		if withoutUnit := strings.Contains(text, "memory: 128}"); err == nil && !withoutUnit {
			t.Errorf("%s: the schema calls it a mistake, and storestream takes it", text)
		}
	}
}
