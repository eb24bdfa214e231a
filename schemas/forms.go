package schemas

import (
	json "github.com/go-json-experiment/json"
	"github.com/twmb/avro"
)

// Forms returns what texts of one schema have in common, although registries write them with other spaces
// or with full names: its JSON, and what decides how bytes are read. The latter leaves out defaults, doc and
// marks of the user's.
func Forms(text string) (forms [2]any) {
	parsed, err := avro.Parse(text)
	if err != nil || json.Unmarshal([]byte(text), &forms[0]) != nil {
		return [2]any{text, text} // equals itself alone
	}
	reads := []any{string(parsed.Canonical())} // without logical types
	for _, field := range parsed.Root().Fields {
		for _, t := range append(field.Type.Branches, field.Type) {
			reads = append(reads, t.LogicalType, t.Precision, t.Scale)
		}
	}
	forms[1] = reads
	return forms
}
