package producer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/storestream/storestream/internal/httpclient"
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
// connections until it is about to expire or a broker refuses one. No error holds the secret, a token or any
// other part of an answer.
type tokens struct {
	login SASL

	mu    sync.Mutex
	token *oauth2.Token // nil before the first and after a refusal
}

func newTokens(login SASL) *tokens {
	if login.TokenHTTP == nil {
		login.TokenHTTP = httpclient.New(nil, TokenTimeout)
	}
	return &tokens{login: login}
}

// Name implements sasl.Mechanism.
func (t *tokens) Name() string { return "OAUTHBEARER" }

// Authenticate implements sasl.Mechanism. One caller fetches a token, and the others wait for that. To the
// Kafka client its error is one of dialing, so it goes on as with a broker that is away.
func (t *tokens) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == nil || time.Until(t.token.Expiry) < beforeExpiry {
		config := clientcredentials.Config{ClientID: t.login.Username, ClientSecret: t.login.Password.Get(),
			TokenURL: t.login.TokenURL, Scopes: t.login.Scopes}
		token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.login.TokenHTTP))
		if err != nil {
			return nil, nil, &net.OpError{Op: "login", Err: fmt.Errorf("no token for the brokers: "+
				"kafka.sasl.token_url %s %w", t.login.TokenURL, withoutAnswer(err))}
		}
		if token.Expiry.IsZero() {
			token.Expiry = time.Now().Add(unknownExpiry)
		}
		t.token = token
		t.login.Hidden.Add("kafka.sasl.token_url", token.AccessToken)
	}
	session, first, err := oauth.Auth{Token: t.token.AccessToken}.AsMechanism().Authenticate(ctx, host)
	return tokenSession{session, t}, first, err
}

// errorCode is the form of an error's code in RFC 6749. Anything else in its place may be a secret.
var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// withoutAnswer describes why there is no token without repeating an answer, which may hold anything.
func withoutAnswer(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		code := ""
		if errorCode.MatchString(answer.ErrorCode) {
			code = " " + answer.ErrorCode
		}
		return fmt.Errorf("answered %d%s: check kafka.sasl.username (the client's id), kafka.sasl.password and "+
			"kafka.sasl.scopes", answer.Response.StatusCode, code)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		if sent.Timeout() { // it is no end of our context, so it is not wrapped
			return errors.New("gave no answer in time")
		}
		return fmt.Errorf("cannot be used: %w", sent.Err)
	}
	return errors.New("answered without a token (access_token, in JSON)")
}

// tokenSession is one login.
type tokenSession struct {
	sasl.Session
	tokens *tokens
}

// Challenge implements sasl.Session. After a refusal the next login fetches another token.
func (s tokenSession) Challenge(answer []byte) (bool, []byte, error) {
	done, next, err := s.Session.Challenge(answer)
	if err != nil {
		s.tokens.mu.Lock()
		s.tokens.token = nil
		s.tokens.mu.Unlock()
		err = errors.New("the broker refuses the token: does it accept the issuer (kafka.sasl.token_url), its " +
			"audience and its scopes (kafka.sasl.scopes)?")
	}
	return done, next, err
}
