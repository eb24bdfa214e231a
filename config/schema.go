package config

import _ "embed"

// JSONSchema is the JSON Schema of the configuration file, for editors and validators. It has each key with
// its type, values, default and description. `go test ./config -update` writes it from the fields of Config
// and from example.yaml. Load also checks rules that a schema cannot express.
//
//go:embed schema.json
var JSONSchema string
