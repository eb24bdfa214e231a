package servers

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"sync/atomic"
	"time"
)

// TokenIssuer issues bearer tokens (JWT) by client credentials, at /token, to any client with a name and a
// secret. At /keys it publishes the key that they are signed with, under the name "one".
type TokenIssuer struct {
	Audience atomic.Value // of the tokens that it issues, a string
	SignedBy atomic.Value // the name in tokens of the key that signed them, a string
	Life     atomic.Int64 // of tokens, in seconds
	Issued   atomic.Int64 // how many

	t   TB
	key *rsa.PrivateKey
}

// TokenIssuerForTest makes one, whose tokens are for "kafka" and good for five minutes.
func TokenIssuerForTest(t TB) *TokenIssuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatalf("%v", err)
	}
	i := &TokenIssuer{t: t, key: key}
	i.Audience.Store("kafka")
	i.SignedBy.Store("one")
	i.Life.Store(300)
	return i
}

// ServeHTTP implements http.Handler.
func (i *TokenIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch client, secret, _ := r.BasicAuth(); {
	case r.URL.Path == "/keys":
		i.answer(w, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "kid": "one", "alg": "RS256",
			"use": "sig", "n": segment(i.key.N.Bytes()), "e": segment(big.NewInt(int64(i.key.E)).Bytes())}}})
	case r.URL.Path != "/token":
		w.WriteHeader(http.StatusNotFound)
	case client == "" || secret == "":
		w.WriteHeader(http.StatusUnauthorized)
	default:
		i.answer(w, map[string]any{"access_token": i.token(client), "token_type": "Bearer",
			"expires_in": i.Life.Load()})
	}
}

func (i *TokenIssuer) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		i.t.Errorf("%v", err)
	}
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *TokenIssuer) token(client string) string {
	i.Issued.Add(1)
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"iss":"https://id.example","aud":%q,"sub":%q,"iat":%d,"exp":%d}`,
		i.Audience.Load(), client, now, now+i.Life.Load())
	header := fmt.Sprintf(`{"alg":"RS256","kid":%q,"typ":"JWT"}`, i.SignedBy.Load())
	signed := segment([]byte(header)) + "." + segment([]byte(claims))
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		i.t.Errorf("%v", err)
	}
	return signed + "." + segment(signature)
}

// Kafka is an Apache Kafka, not started, whose second listener takes the tokens up to the second in which
// they expire, and has each connection log in again by then, or earlier: after maxReauth milliseconds. keys
// is the issuer's address. c is the certificate that this listener shows. Nil means no TLS.
func (i *TokenIssuer) Kafka(keys, maxReauth string, c *Certificate) KafkaConfig {
	keys += "/keys"
	const oauth = "org.apache.kafka.common.security.oauthbearer."
	config := KafkaConfig{Secured: "SASL_PLAINTEXT", Settings: map[string]string{
		SecuredSettings + "sasl.enabled.mechanisms":      "OAUTHBEARER",
		SecuredSettings + "oauthbearer.sasl.jaas.config": oauth + "OAuthBearerLoginModule required;",
		SecuredSettings + "oauthbearer.sasl.server.callback.handler.class": oauth +
			"OAuthBearerValidatorCallbackHandler",
		SecuredSettings + "sasl.oauthbearer.jwks.endpoint.url":  keys,
		SecuredSettings + "sasl.oauthbearer.expected.audience":  "kafka",
		SecuredSettings + "sasl.oauthbearer.clock.skew.seconds": "0",
		SecuredSettings + "connections.max.reauth.ms":           maxReauth,
	}, JavaFlags: []string{"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + keys}}
	if c != nil {
		config.Secured = "SASL_SSL"
		config.Settings[SecuredSettings+"ssl.keystore.type"] = "PEM"
		config.Settings[SecuredSettings+"ssl.keystore.location"] = c.KeyStore
	}
	return config
}
