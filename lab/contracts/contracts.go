// Package contracts holds what storestream prints for other programs against these programs' own
// descriptions: JSON Schema for editors, AsyncAPI, and topics and rights for Strimzi and Terraform.
package contracts

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// Compile returns the JSON Schema in text.
func Compile(text string) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return compiler.Compile("schema.json")
}

// Validate returns why the YAML or JSON in text is not valid by schema.
func Validate(schema *jsonschema.Schema, text string) error {
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return fmt.Errorf("not YAML: %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return schema.Validate(document)
}
