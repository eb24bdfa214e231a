package schemas

import "crypto/sha256"

// Field is one field of a resource.
type Field struct {
	Name     string
	Nullable bool
	PII      bool   // personal data
	Policy   Policy // how the field is published. "" means PolicyClear
	Doc      string

	codec *codec
	key   [sha256.Size]byte // of PolicyHash
}

const masked = `"***"`

// Shown returns text, a value of f in JSON, as people may see it. With maskPII a personal value that is not
// null becomes "***".
func (f *Field) Shown(text []byte, maskPII bool) []byte {
	if maskPII && f.PII && string(text) != "null" {
		return []byte(masked)
	}
	return text
}
