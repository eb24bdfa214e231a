package producer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
)

const (
	// TokenTimeout is the timeout of a request for a token.
	TokenTimeout = 10 * time.Second
	// unknownExpiry is how long a token is used if the endpoint does not tell its lifetime.
	unknownExpiry = time.Minute
	// beforeExpiry is how early another token is fetched: a login takes a while, and clocks differ.
	beforeExpiry = 10 * time.Second
)

// tokens is the mechanism OAUTHBEARER. It fetches tokens by client credentials, and keeps one for all
// connections until it is about to expire or a broker refuses it. No error holds the secret, a token or any
// other part of an answer.
type tokens struct {
	config clientcredentials.Config // without the secret
	secret rotation.Secret
	hidden *rotation.Hidden // hears of each token
	client *http.Client

	mu    sync.Mutex
	token *oauth2.Token // nil before the first and after a refusal
}

func newTokens(s SASL) *tokens {
	t := &tokens{secret: s.ClientSecret, hidden: s.Hidden, client: s.TokenHTTP,
		config: clientcredentials.Config{ClientID: s.ClientID, TokenURL: s.TokenURL, Scopes: s.Scopes}}
	if t.client == nil {
		t.client = httpclient.New(nil, TokenTimeout)
	}
	return t
}

// Name implements sasl.Mechanism.
func (t *tokens) Name() string { return "OAUTHBEARER" }

// Authenticate implements sasl.Mechanism.
func (t *tokens) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	token, err := t.get(ctx)
	if err != nil {
		return nil, nil, err
	}
	session, first, err := oauth.Auth{Token: token}.AsMechanism().Authenticate(ctx, host)
	return &tokenSession{session, t, token}, first, err
}

// get returns a token that is good for a while. One caller fetches it, and the others wait for that.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == nil || time.Until(t.token.Expiry) < beforeExpiry {
		config := t.config
		config.ClientSecret = t.secret.Get()
		token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.client))
		if err != nil {
			return "", t.explain(err)
		}
		if token.Expiry.IsZero() {
			token.Expiry = time.Now().Add(unknownExpiry)
		}
		t.token = token
		t.hidden.Add("kafka.sasl.token_url", token.AccessToken)
	}
	return t.token.AccessToken, nil
}

// forget drops a token that a broker refused, unless there is a newer one.
func (t *tokens) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != nil && t.token.AccessToken == token {
		t.token = nil
	}
}

// explain describes the problem without repeating an answer, which may hold anything.
func (t *tokens) explain(err error) error {
	var answer *oauth2.RetrieveError
	var elsewhere *httpclient.RedirectError
	var sent *url.Error
	var handshake *tlsfile.HandshakeError
	e := &tokenError{url: t.config.TokenURL}
	switch {
	case errors.As(err, &handshake):
		e.says, e.err = "cannot be used: "+handshake.Error(), handshake
	case errors.As(err, &elsewhere):
		e.says = fmt.Sprintf("redirects to %s, which is not followed, because the secret would go with the request",
			elsewhere.To)
	case errors.As(err, &answer) && answer.Response.StatusCode >= http.StatusInternalServerError:
		e.says = fmt.Sprintf("answered %d: it is tried again", answer.Response.StatusCode)
	case errors.As(err, &answer):
		e.says = fmt.Sprintf("answered %d%s: check kafka.sasl.client_id, kafka.sasl.client_secret and "+
			"kafka.sasl.scopes", answer.Response.StatusCode, spaced(codeOnly(answer.ErrorCode)))
	case errors.As(err, &sent) && sent.Timeout():
		e.says = fmt.Sprintf("gave no answer within %s: it is tried again", t.client.Timeout)
	case errors.As(err, &sent):
		e.says = fmt.Sprintf("does not answer (%v): it is tried again", sent.Err)
	default:
		e.says = "answered without a token (access_token, in JSON): is that the token endpoint?"
	}
	return e
}

// tokenError says why there is no token.
type tokenError struct {
	url, says string
	err       error // nil: says is all
}

func (e *tokenError) Error() string {
	return fmt.Sprintf("no token for the brokers: kafka.sasl.token_url %s %s", e.url, e.says)
}

// Unwrap makes it an error of dialing to the Kafka client, which goes on as with a broker that is away.
func (e *tokenError) Unwrap() error {
	return &net.OpError{Op: "dial", Err: cmp.Or(e.err, errors.New(e.says))}
}

// tokenSession is one login.
type tokenSession struct {
	sasl.Session
	tokens *tokens
	token  string
}

// Challenge implements sasl.Session. A broker that refuses a token answers with JSON that says why (RFC
// 7628).
func (s *tokenSession) Challenge(answer []byte) (bool, []byte, error) {
	done, next, err := s.Session.Challenge(answer)
	if err != nil {
		s.tokens.forget(s.token)
		var refusal struct {
			Status string `json:"status"`
		}
		_ = json.Unmarshal(answer, &refusal) // the status is only for the reader
		err = fmt.Errorf("the broker refuses the token%s: does it accept who issued it (kafka.sasl.token_url), "+
			"its audience and its scopes (kafka.sasl.scopes)?", spaced(codeOnly(refusal.Status)))
	}
	return done, next, err
}

// codeOnly returns an error code of another program, or an empty text if it does not look like one.
func codeOnly(text string) string {
	if len(text) > 64 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return text
}

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}
