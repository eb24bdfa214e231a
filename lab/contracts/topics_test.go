package contracts

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
	"sigs.k8s.io/yaml"
)

// strict makes an OpenAPI schema of a resource refuse fields that it does not name, as kubectl does.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, named := s["properties"].(map[string]any); named && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, child := range s {
			strict(child)
		}
	case []any:
		for _, child := range s {
			strict(child)
		}
	}
}

// customResource is the schema in a CustomResourceDefinition of Strimzi: install/*-operator/04-Crd-*.yaml of
// strimzi/strimzi-kafka-operator at 8541da1e (Apache License 2.0).
func customResource(t *testing.T, file string) string {
	t.Helper()
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(page(t, "lab/contracts/testdata/"+file)), &definition); err != nil {
		t.Fatal(err)
	}
	version := definition.Spec.Versions[0]
	if version.Name != "v1" {
		t.Fatalf("%s is of %s", file, version.Name)
	}
	strict(version.Schema.OpenAPIV3Schema)
	text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTopicsForStrimziAreValidByItsDefinitions(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	text := storestream(t, "topics", "export", "--as", "strimzi", "--cluster", "events", "--set",
		"kafka.replication_factor=3", "--set", "kafka.tls.enabled=true", "--set", "resources.users.enabled=false")
	count := map[string]int{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var resource struct {
			APIVersion, Kind string
			Metadata         struct {
				Name   string
				Labels map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(document), &resource); err != nil {
			t.Fatal(err)
		}
		file := map[string]string{"KafkaTopic": "strimzi-kafkatopic.yaml", "KafkaUser": "strimzi-kafkauser.yaml"}
		schema, err := Compile(customResource(t, file[resource.Kind]))
		if err != nil {
			t.Fatal(err)
		}
		err = Validate(schema, document)
		if err != nil || resource.APIVersion != "kafka.strimzi.io/v1" ||
			!name.MatchString(resource.Metadata.Name) ||
			resource.Metadata.Labels["strimzi.io/cluster"] != "events" {
			t.Errorf("%v\n%s", err, document)
		}
		count[resource.Kind]++
		misspelt := strings.NewReplacer("partitions:", "partition:", "operations:", "operation:")
		if err := Validate(schema, misspelt.Replace(document)); err == nil {
			t.Errorf("Strimzi takes a field that is misspelt:\n%s", document)
		}
	}
	if count["KafkaTopic"] != 7 || count["KafkaUser"] != 4 {
		t.Errorf("there are %v, expected 7 topics and 4 users", count)
	}
}

// argument is an argument of a resource of the Terraform provider Mongey/kafka.
type argument struct {
	Type     string
	Required bool
	Values   []string // those that it may have; none: any
}

// testdata/terraform-kafka.json is what kafka/resource_kafka_*.go of Mongey/terraform-provider-kafka say at
// 678b3c70, and the words that its kafka_acls.go knows.
func TestTopicsForTerraformAreThoseThatTheProviderTakes(t *testing.T) {
	var provider map[string]map[string]argument
	known := page(t, "lab/contracts/testdata/terraform-kafka.json")
	if err := json.Unmarshal([]byte(known), &provider); err != nil {
		t.Fatal(err)
	}
	text := storestream(t, "topics", "export", "--as", "terraform", "--set",
		"kafka.topic_settings=compression.type=${zstd}")
	file, diagnostics := hclparse.NewParser().ParseHCL([]byte(text), "topics.tf")
	if diagnostics.HasErrors() {
		t.Fatalf("%v\n%s", diagnostics, text)
	}
	content, diagnostics := file.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "resource", LabelNames: []string{"type", "name"}}}})
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	count, names := map[string]int{}, map[string]bool{}
	for _, block := range content.Blocks {
		kind, name := block.Labels[0], strings.Join(block.Labels, ".")
		attributes, diagnostics := block.Body.JustAttributes()
		if diagnostics.HasErrors() || names[name] {
			t.Errorf("%s: %v, there before: %v", name, diagnostics, names[name])
		}
		names[name] = true
		count[kind]++
		for want, argument := range provider[kind] {
			if argument.Required && attributes[want] == nil {
				t.Errorf("%s has no %s", name, want)
			}
		}
		for key, attribute := range attributes {
			argument, known := provider[kind][key]
			value, diagnostics := attribute.Expr.Value(nil)
			if !known || diagnostics.HasErrors() {
				t.Errorf("%s: %s is known: %v, %v", name, key, known, diagnostics)
				continue
			}
			of := map[string]cty.Type{"string": cty.String, "int": cty.Number}[argument.Type]
			if argument.Type != "map" && value.Type() != of ||
				len(argument.Values) > 0 && !slices.Contains(argument.Values, value.AsString()) {
				t.Errorf("%s: %s is %#v", name, key, value)
			}
			if argument.Type == "map" && value.GetAttr("compression.type").AsString() != "${zstd}" {
				t.Errorf("%s: %s is %#v", name, key, value)
			}
		}
	}
	if count["kafka_topic"] != 8 || count["kafka_acl"] == 0 {
		t.Errorf("there are %v, expected 8 topics and rights", count)
	}
}
