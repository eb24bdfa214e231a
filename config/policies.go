package config

import (
	"strings"

	"github.com/storestream/storestream/schemas"
)

// Policies are the policies of fields by "resource.field". In YAML they are a mapping, everywhere else
// resource.field=policy between commas.
type Policies map[string]schemas.Policy

func parsePolicies(text string) (Policies, error) {
	p := Policies{}
	for _, one := range parseList(text) {
		name, policy, ok := strings.Cut(one, "=")
		name, policy = strings.TrimSpace(name), strings.TrimSpace(policy)
		if !ok {
			return nil, ruleError("expected resource.field=policy between commas, such as users.email=hash, " +
				"or in YAML a mapping")
		}
		if _, twice := p[name]; twice {
			return nil, ruleError(name + " is there twice: expected it once")
		}
		p[name] = schemas.Policy(policy)
	}
	return p, nil
}

// checkPrivacy holds the policies against the schemas. Where those cannot be loaded, whoever loads them says
// so.
func checkPrivacy(c *Config, m *mistakes) {
	m.oneOf("dead_letters.rows", c.DeadLetters.Rows, Masked, Full)
	p := c.FieldPrivacy()
	m.require("privacy.key", len(p.Key) == 0 || len(p.Key) >= schemas.MinPrivacyKey,
		"expected 32 bytes or more, such as `openssl rand -hex 32` prints")
	m.require("privacy.key", len(p.Key) > 0 || !p.Hashes(),
		"a field of privacy.fields is to be hashed: expected the key, a secret of 32 bytes or more, such as "+
			"`openssl rand -hex 32` prints")
	if len(p.Fields) == 0 {
		return
	}
	set, err := schemas.Load(c.Schemas.Dir)
	if err != nil {
		return
	}
	for _, mistake := range set.Protect(p) {
		m.add(Mistake{Key: keyPolicies, From: m.values.of(keyPolicies).From, Rule: mistake})
	}
}
