package producer

import (
	"context"
	"net/http"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/storestream/storestream/internal/loopback"
	"github.com/storestream/storestream/internal/rotation"
)

// SASL of the connections to the brokers. Mechanism is empty (none), PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or
// OAUTHBEARER.
type SASL struct {
	Mechanism string
	Username  string          // of OAUTHBEARER the client's id
	Password  rotation.Secret // read again at each login, of OAUTHBEARER the client's secret for each token
	// TokenURL is the endpoint for bearer tokens by client credentials (RFC 6749, 4.4).
	TokenURL string
	// Parameters go into the request for a token, such as scope or audience. Those whose name begins with
	// extension_ go to the broker with the token, without that prefix (RFC 7628).
	Parameters map[string]string
	TokenHTTP  *http.Client // fetches tokens. The default is httpclient.New(nil, TokenTimeout)
	// Hidden gets each token, and masks secrets in texts of other programs. It may be nil.
	Hidden *rotation.Hidden
	// AllowPlaintext is set if a password or token may go to other machines without TLS.
	AllowPlaintext bool
}

// exposes reports whether a login at host without TLS could show the secret to others. SCRAM proves that it
// knows the password, and does not send it.
func (s SASL) exposes(host string) bool {
	sent := s.Mechanism != "" && !strings.HasPrefix(s.Mechanism, "SCRAM-")
	return sent && !s.AllowPlaintext && !loopback.Is(host)
}

// options are a client's options for this login. Without a mechanism there are none.
func (s SASL) options() []kgo.Opt {
	switch s.Mechanism {
	case "PLAIN":
		return []kgo.Opt{kgo.SASL(plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: s.Username, Pass: s.Password.Get()}, nil
		}))}
	case "SCRAM-SHA-256":
		return []kgo.Opt{kgo.SASL(scram.Sha256(s.scram))}
	case "SCRAM-SHA-512":
		return []kgo.Opt{kgo.SASL(scram.Sha512(s.scram))}
	case "OAUTHBEARER":
		return []kgo.Opt{kgo.SASL(newTokens(s))}
	}
	return nil
}

func (s SASL) scram(context.Context) (scram.Auth, error) {
	return scram.Auth{User: s.Username, Pass: s.Password.Get()}, nil
}
