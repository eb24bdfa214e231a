package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/storestream/storestream/schemas"
)

const privacyKey = "a key of thirty-two bytes or more"

func TestPoliciesAreAMappingInYAMLAndAListElsewhere(t *testing.T) {
	want := map[string]schemas.Policy{"users.email": schemas.PolicyHash, "users.city": schemas.PolicyDrop}
	key := "STORESTREAM_PRIVACY__KEY=" + privacyKey
	for name, in := range map[string]Input{
		"YAML, a block": {File: file(t, "a.yaml",
			"privacy:\n  fields:\n    users.email: hash\n    users.city: drop\n")},
		"YAML, in one line": {File: file(t, "b.yaml",
			"privacy: {fields: {users.email: hash, users.city: drop}}\n")},
		"YAML, a list": {File: file(t, "c.yaml",
			"privacy: {fields: [users.email=hash, users.city=drop]}\n")},
		"the environment": {Environ: []string{
			"STORESTREAM_PRIVACY__FIELDS=users.email=hash, users.city = drop"}},
		"a flag": {Set: []string{"privacy.fields=users.email=hash,users.city=drop"}},
	} {
		in.Environ = append(in.Environ, key)
		if got := load(t, in).Privacy.Fields; !maps.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", name, got, want)
		}
	}
}

func TestPoliciesThatCannotBeAreMistakesAllAtOnce(t *testing.T) {
	for fields, says := range map[string][]string{
		"{users.emial: drop, users.age: hash}": {"users.emial: no such field", "users.age: hash is for text",
			"expected a secret"},
		"{users.email: hash}": {"if a field of privacy.fields is to be hashed",
			"openssl rand -hex 32"},
		"users.email":              {"expected resource.field=policy between commas"},
		"a.b=drop,a.b=mask":        {"each field once"},
		"{users: {email: drop}}":   {"expected plain values in it"},
		"{users.id: drop}":         {"users.id: storestream needs it"},
		"{shipments.order_id: no}": {`shipments.order_id: policy "no": expected clear, mask, hash or drop`},
	} {
		var all []string
		for _, m := range mistakesOf(t, Input{File: file(t, "a.yaml", "privacy:\n  fields: "+fields+"\n")}) {
			all = append(all, m.Error())
		}
		for _, want := range says {
			if text := strings.Join(all, "\n"); !strings.Contains(text, want) {
				t.Errorf("%s: %s\nexpected %q", fields, text, want)
			}
		}
	}
	short := mistakesOf(t, Input{Environ: []string{"STORESTREAM_PRIVACY__KEY=too-short"}})
	if len(short) != 1 || !strings.Contains(short[0].Error(), "32 bytes or more") ||
		strings.Contains(short[0].Error(), "too-short") {
		t.Error(short)
	}
}
