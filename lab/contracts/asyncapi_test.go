package contracts

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hamba/avro/v2"

	"github.com/storestream/storestream/lab/product"
)

// folder holds the program while the tests run.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "storestream-contracts-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// program is storestream, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "storestream")
	return path, product.Build(context.Background(), path, nil)
})

// storestream returns the output of a command.
func storestream(t *testing.T, args ...string) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env, cmd.Stderr = []string{}, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("storestream %v: %v\n%s", args, err, &errs)
	}
	return string(out)
}

// unpacked is a file of testdata.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// AsyncAPI's own schema: schemas/3.0.0.json of @asyncapi/specs 6.11.1 from npm (Apache License 2.0).
const asyncAPISchema = "asyncapi-3.0.0.json.gz"

func TestTheAsyncAPIDocumentIsOneAndHasTheSchemasOfTheTopics(t *testing.T) {
	schema, err := Compile(unpacked(t, asyncAPISchema))
	if err != nil {
		t.Fatal(err)
	}
	text := storestream(t, "schema", "asyncapi", "--set", "kafka.topic_prefix=shop.", "--set",
		"kafka.replication_factor=3", "--set", "resources.users.enabled=false", "--set", "kafka.tls.enabled=true")
	if err := Validate(schema, text); err != nil {
		t.Error(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("f3a9c1d27e5b48608d14b7e20c6f93a5185bd0472fe69c3be8417a05d62c9f30"),
		0o600); err != nil {
		t.Fatal(err)
	}
	hashed := storestream(t, "schema", "asyncapi", "--set", "privacy.fields=users.email=hash", "--set",
		"privacy.key=file:"+key)
	if err := Validate(schema, hashed); err != nil || strings.Count(hashed, `"privacy_key_id"`) != 1 ||
		strings.Contains(text, `"privacy_key_id"`) {
		t.Errorf("the header of a row with hashes stands in its message alone: %v\n%s", err, hashed)
	}
	type message struct {
		Payload struct {
			Type, SchemaFormat string
			Schema             json.RawMessage
		}
		Bindings struct {
			Kafka struct {
				Key struct {
					Avro json.RawMessage `json:"x-avro-schema"`
				}
			}
		}
	}
	var document struct {
		Channels map[string]struct {
			Address  string
			Messages map[string]message
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{"orders": "storestream.OrderKey", "shipments": "storestream.ShipmentKey"}
	for name, key := range keys {
		channel := document.Channels[name]
		row, tombstone := channel.Messages["row"], channel.Messages["tombstone"]
		value, err := avro.Parse(string(row.Payload.Schema))
		if err != nil {
			t.Fatal(err)
		}
		registered, err := avro.Parse(storestream(t, "schema", "show", name))
		if err != nil {
			t.Fatal(err)
		}
		ofKey, err := avro.Parse(string(row.Bindings.Kafka.Key.Avro))
		if err != nil {
			t.Fatal(err)
		}
		if value.Fingerprint() != registered.Fingerprint() || channel.Address != "shop."+name ||
			tombstone.Payload.Type != "null" || ofKey.(avro.NamedSchema).FullName() != key {
			t.Errorf("%s at %s: its value %s, its key %s, its tombstone %+v", name, channel.Address, value, ofKey,
				tombstone)
		}
	}
	if len(document.Channels) != 7 {
		t.Errorf("%d channels, expected four of resources and three that they share", len(document.Channels))
	}
	if err := Validate(schema, strings.Replace(text, `"action": "send"`, `"action": "post"`, 1)); err == nil {
		t.Error("AsyncAPI's schema takes an action that it does not know")
	}
}
