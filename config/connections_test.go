package config

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/rotation"
)

// The scheme of an address says whether there is TLS. Keys of TLS with http would be believed and do nothing.
func TestKeysOfTLSWithAnAddressThatHasNoneAreMistakes(t *testing.T) {
	for section, address := range map[string]string{"registry": "registry.url", "store": "store.base_url"} {
		for key, value := range map[string]string{"ca_file": "/x", "cert_file": "/x", "key_file": "/x"} {
			key = section + ".tls." + key
			found := mistakesOf(t, Input{Set: []string{address + "=http://127.0.0.1:8/v1", key + "=" + value}})
			if len(found) != 1 || found[0].Key != section+".tls" ||
				!strings.Contains(found[0].Rule, "https in its URL") {
				t.Errorf("%s gives %v", key, found)
			}
		}
		found := mistakesOf(t, Input{Set: []string{address + "=https://127.0.0.1:8/v1",
			section + ".tls.ca_file=example.yaml"}})
		if len(found) != 1 || found[0].Key != section+".tls.ca_file" ||
			!strings.Contains(found[0].Rule, "PEM") {
			t.Errorf("%s gives %v", section, found)
		}
	}
}

// net/http sends a proxy the login of its address, and the proxy may repeat it.
func TestTheLoginOfAProxyIsMaskedAndHidden(t *testing.T) {
	const password = "geheimes-wort"
	for value, shown := range map[string]string{
		"http://proxy.example:3128":                          "http://proxy.example:3128",
		"proxy.example:3128":                                 "proxy.example:3128",
		"http://me:" + password + "@proxy.example:3128":      "******",
		"me:" + password + "@proxy.example:3128":             "******",
		"socks5://me:" + password + "@proxy.example/":        "******",
		"http://me:1/" + password + "@proxy.example:3128":    "******",
		"http://me:1#" + password + "@proxy.example:3128":    "******",
		"http://me:x/" + password + "@proxy.example:3128":    "******",
		"http://me:x@" + password + "@proxy.example:3128":    "******",
		"http://me:x@1/" + password + "@proxy.example:3128":  "******",
		"http://me:%zz" + password + "@proxy.example:3128":   "******",
		"http://me@proxy.example:3128/?token=" + password:    "******",
		"http://" + password + "@proxy.example:3128/a@proxy": "******",
	} {
		c := load(t, Input{Environ: []string{"HTTPS_PROXY=" + value, "no_proxy="}})
		e := c.Entries()[len(newLoader().leaves):]
		if len(e) != 1 || e[0] != (Entry{"HTTPS_PROXY", shown, "environment HTTPS_PROXY"}) {
			t.Errorf("%s is shown as %v, expected %s", value, e, shown)
		}
		said := fmt.Sprintf("invalid proxy address %q: no", value)
		if hidden := c.Hidden().Hide(said); strings.Contains(hidden, password) {
			t.Errorf("an error repeats %s", hidden)
		}
	}
	hidden := load(t, Input{Environ: []string{"http_proxy=http://me:" + password + "@proxy.example"}}).Hidden()
	login := base64.StdEncoding.EncodeToString([]byte("me:" + password))
	if said := hidden.Hide(password + ", Basic " + login); strings.Contains(said, password) ||
		strings.Contains(said, login[:20]) {
		t.Errorf("what a proxy repeats reads %s", said)
	}
}

func TestATokenOfTheRegistryStandsAlone(t *testing.T) {
	const token = "STORESTREAM_REGISTRY__TOKEN=geheim"
	for _, other := range []string{"STORESTREAM_REGISTRY__USERNAME=u", "STORESTREAM_REGISTRY__PASSWORD=p"} {
		found := mistakesOf(t, Input{Environ: []string{token, other}})
		if at := found[0]; at.Key != "registry.token" ||
			!strings.Contains(at.Rule, "one way to log in") || strings.Contains(at.Error(), "geheim") {
			t.Errorf("%s gives %v", other, found)
		}
	}
	c := load(t, Input{Environ: []string{token}})
	if e := entry(t, c, "registry.token"); c.Registry.Token.Get() != "geheim" || e.Value != rotation.Mask {
		t.Errorf("%q, shown as %q", c.Registry.Token.Get(), e.Value)
	}
	found := mistakesOf(t, Input{Environ: []string{token + "\nX: y"}})
	if len(found) != 1 || found[0].Key != "registry.token" || strings.Contains(found[0].Error(), "geheim") {
		t.Errorf("two lines give %v", found)
	}
}

func TestOAUTHBEARERTakesAnEndpointAndTheClientsCredentials(t *testing.T) {
	const prefix = "STORESTREAM_KAFKA__SASL__"
	good := map[string]string{"MECHANISM": "OAUTHBEARER", "TOKEN_URL": "https://id.example/token",
		"USERNAME": "s", "PASSWORD": "geheim",
		"PARAMETERS": "scope=a b, audience=https://kafka.example, extension_logicalCluster=lkc-1"}
	with := func(key, value string) (environ []string) {
		for k, v := range good {
			if k != key {
				environ = append(environ, prefix+k+"="+v)
			}
		}
		return append(environ, prefix+key+"="+value)
	}
	c := load(t, Input{Environ: with("TOKEN_URL", "http://127.0.0.1:8/token")})
	if s := c.Kafka.SASL; s.Password.Get() != "geheim" || len(s.Parameters) != 3 ||
		s.Parameters["scope"] != "a b" || s.Parameters["audience"] != "https://kafka.example" {
		t.Errorf("%+v", s)
	}
	for _, test := range []struct{ key, value, at, rule string }{
		{"TOKEN_URL", "", "token_url", "if kafka.sasl.mechanism is OAUTHBEARER"},
		{"TOKEN_URL", "http://id.example/token", "token_url", "unencrypted"},
		{"TOKEN_URL", "https://s:geheim@id.example/token", "token_url", "without credentials"},
		{"USERNAME", "", "username", "expected a value"},
		{"PASSWORD", "", "password", "expected a value"},
		{"MECHANISM", "", "username", "else none"},
		{"MECHANISM", "PLAIN", "token_url", "else none"},
		{"MECHANISM", "PLAIN", "parameters", "else none"},
		{"PARAMETERS", "audience", "parameters", "expected"},
		{"PARAMETERS", "audience=", "parameters", "name=value"},
		{"PARAMETERS", "client_secret=x", "parameters", "storestream sets grant_type, client_id"},
	} {
		found := mistakesOf(t, Input{Environ: with(test.key, test.value)})
		at := slices.IndexFunc(found, func(m Mistake) bool { return m.Key == "kafka.sasl."+test.at })
		if at < 0 || !strings.Contains(found[at].Rule, test.rule) || strings.Contains(fmt.Sprint(found), "geheim") {
			t.Errorf("%s=%s gives %v", test.key, test.value, found)
		}
	}
}

// kafka.tls is of the endpoint too.
func TestKafkasTLSMayBeThatOfTheTokenEndpointAlone(t *testing.T) {
	given := environ("kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url=https://id.example/token",
		"kafka.sasl.username=s", "kafka.sasl.password=geheim", "kafka.tls.ca_file=example.yaml")
	found := mistakesOf(t, Input{Environ: given})
	if len(found) != 1 || found[0].Key != "kafka.tls.ca_file" || !strings.Contains(found[0].Rule, "PEM") {
		t.Errorf("%v", found)
	}
}

func TestSettingsOfTopicsThatWouldLoseRowsAreMistakes(t *testing.T) {
	c := load(t, Input{Set: []string{"kafka.topic_settings=segment.bytes=52428800, min.insync.replicas=2",
		"kafka.compression=gzip"}})
	if len(c.Kafka.TopicSettings) != 2 || c.Kafka.Compression != "gzip" {
		t.Errorf("%+v", c.Kafka)
	}
	for set, rule := range map[string]string{
		"topic_settings=segment.bytes":                     "name=value",
		"topic_settings=segment.bytes=":                    "name=value",
		"topic_settings=Segment Bytes=1":                   "name=value",
		"topic_settings=segment.bytes=1,segment.bytes=2":   "each name once",
		"topic_settings=cleanup.policy=delete":             "cleanup.policy is not to be set here",
		"topic_settings=a=1,message.timestamp.type=Create": "message.timestamp.type is not",
		"topic_settings=retention.ms=1":                    "retention.ms is not",
		"topic_settings=max.compaction.lag.ms=1":           "kafka.erase_within",
		"compression=brotli":                               "gzip",
	} {
		found := mistakesOf(t, Input{Set: []string{"kafka." + set}})
		if len(found) != 1 || !strings.Contains(found[0].Rule, rule) {
			t.Errorf("%s gives %v", set, found)
		}
	}
}
