package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/storestream/storestream/schemas"
)

const privacyKey = "f3a9c1d27e5b48608d14b7e20c6f93a5185bd0472fe69c3be8417a05d62c9f30"

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
			"expected 64 hexadecimal digits"},
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
}

// Who guesses the key has the values.
func TestAKeyThatOpenSSLCannotHaveMadeIsRefusedWithWhatToDo(t *testing.T) {
	const says = "expected 64 hexadecimal digits that do not repeat a few bytes, as `openssl rand -hex 32`"
	for _, key := range []string{"too-short", privacyKey[1:], privacyKey[2:], privacyKey + "00",
		"g" + privacyKey[1:], " " + privacyKey[1:], strings.Repeat("k", 32), strings.Repeat("a", 64),
		strings.Repeat("correct horse battery staple ", 3)[:64], strings.Repeat("0123456789abcdef", 4)} {
		got := mistakesOf(t, Input{Environ: []string{"STORESTREAM_PRIVACY__KEY=" + key}})
		if len(got) != 1 || !strings.Contains(got[0].Error(), "privacy.key") ||
			!strings.Contains(got[0].Error(), says) || strings.Contains(got[0].Error(), key) {
			t.Errorf("%q: %v", key, got)
		}
	}
	small, large := file(t, "small", privacyKey+"\r\n"), file(t, "large", strings.ToUpper(privacyKey))
	fields := "STORESTREAM_PRIVACY__FIELDS=users.email=hash"
	ids := map[string]bool{}
	for _, key := range []string{privacyKey, "file:" + small, "file:" + large} {
		set := load(t, Input{Environ: []string{"STORESTREAM_PRIVACY__KEY=" + key, fields}}).SchemaSet()
		ids[set.Get("users").KeyID()] = true
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("one key has the ids %v", ids)
	}
}
