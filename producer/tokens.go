package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
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
	// longestTokenPause is the longest pause after refusals.
	longestTokenPause = 10 * time.Second
	// extensionPrefix marks the parameters that go to the broker, as in the login of Kafka's Java clients.
	extensionPrefix = "extension_"
)

// errNoToken is of every login without a token that a broker takes.
var errNoToken = errors.New("no token for the brokers")

// tokenPause is the pause after the first refusal of a secret or token. It is a variable for the tests.
var tokenPause = time.Second

// tokens is the mechanism OAUTHBEARER. It fetches tokens by client credentials, and keeps one for all
// connections until it is about to expire or a broker refuses one. No error holds the secret or a token.
//
// Some endpoints take the client's secret in a header only, others in the body only. The library tries both,
// and keeps to the way that worked. After a refusal, by the endpoint or by a broker, every login fails with
// that refusal until a pause is over: many endpoints lock out a client that asks without end. Another secret
// is tried at once.
type tokens struct {
	login      SASL
	extensions map[string]string // those of login.Parameters that go to the brokers

	mu      sync.Mutex
	config  clientcredentials.Config // with the secret that was sent last
	token   *oauth2.Token            // nil before the first and after a refusal
	refused error                    // the last refusal, or nil after a login that succeeded
	pause   time.Duration            // after it
	again   time.Time                // the end of the pause
}

func newTokens(login SASL) *tokens {
	if login.TokenHTTP == nil {
		login.TokenHTTP = httpclient.New(nil, TokenTimeout)
	}
	form := url.Values{}
	t := &tokens{login: login, extensions: map[string]string{}, config: clientcredentials.Config{
		ClientID: login.Username, TokenURL: login.TokenURL, EndpointParams: form}}
	for name, value := range login.Parameters {
		if extension, ok := strings.CutPrefix(name, extensionPrefix); ok {
			t.extensions[extension] = value
		} else {
			form.Set(name, value)
		}
	}
	return t
}

// Name implements sasl.Mechanism.
func (t *tokens) Name() string { return "OAUTHBEARER" }

// Authenticate implements sasl.Mechanism. One caller fetches a token, and the others wait for that. To the
// Kafka client its error is one of dialing, so it goes on as with a broker that is away.
func (t *tokens) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == nil || time.Until(t.token.Expiry) < beforeExpiry {
		if err := t.fetch(ctx); err != nil {
			return nil, nil, &net.OpError{Op: "login", Err: err}
		}
	}
	login := oauth.Auth{Token: t.token.AccessToken, Extensions: t.extensions}
	session, first, err := login.AsMechanism().Authenticate(ctx, host)
	return tokenSession{session, t, t.token, host}, first, err
}

// fetch fetches a token, unless one was refused a moment ago.
func (t *tokens) fetch(ctx context.Context) error {
	secret, now := t.login.Password.Get(), time.Now()
	if t.refused != nil && secret == t.config.ClientSecret && now.Before(t.again) {
		return t.refused
	}
	t.config.ClientSecret = secret
	token, err := t.config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.login.TokenHTTP))
	if err != nil {
		err = fmt.Errorf("%w: kafka.sasl.token_url %s %w: perhaps that address, kafka.sasl.username (the "+
			"client's id), kafka.sasl.password or kafka.sasl.parameters is wrong",
			errNoToken, t.login.TokenURL, t.describe(err))
		if ctx.Err() == nil { // or the client was closed, and the endpoint may be well
			t.putOff(err)
		}
		return err
	}
	token.Expiry = cmp.Or(token.Expiry, now.Add(unknownExpiry))
	t.token = token
	t.login.Hidden.Add("kafka.sasl.token_url", token.AccessToken)
	return nil
}

// putOff notes a refusal.
func (t *tokens) putOff(err error) {
	t.pause = min(max(2*t.pause, tokenPause), longestTokenPause)
	t.token, t.refused, t.again = nil, err, time.Now().Add(t.pause)
}

// describe describes why there is no token. Of an answer it repeats the error's code and description of RFC
// 6749, and nothing else.
func (t *tokens) describe(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("answered %d %q", answer.Response.StatusCode,
			t.words(answer.ErrorCode+" "+answer.ErrorDescription))
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		if sent.Timeout() { // it is no end of our context, so it is not wrapped
			return errors.New("gave no answer in time")
		}
		return fmt.Errorf("cannot be used: %w", sent.Err)
	}
	return errors.New("answered without a token (access_token, in JSON)")
}

// words returns another program's words, in one line, bounded, and without secrets.
func (t *tokens) words(text string) string {
	return fmt.Sprintf("%.300s", t.login.Hidden.Hide(strings.Join(strings.Fields(text), " ")))
}

// tokenSession is one login.
type tokenSession struct {
	sasl.Session
	tokens *tokens
	token  *oauth2.Token
	host   string
}

// Challenge implements sasl.Session. After a refusal a login fetches another token, when the pause is over.
func (s tokenSession) Challenge(answer []byte) (bool, []byte, error) {
	done, next, err := s.Session.Challenge(answer)
	s.tokens.mu.Lock()
	defer s.tokens.mu.Unlock()
	if err == nil {
		s.tokens.refused, s.tokens.pause = nil, 0
		return done, next, nil
	}
	err = fmt.Errorf("%w: broker %s refuses the token with %s: perhaps it does not accept the issuer "+
		"(kafka.sasl.token_url), or expects an audience, a scope or an extension (kafka.sasl.parameters)",
		errNoToken, s.host, s.tokens.words(string(answer)))
	if s.token == s.tokens.token { // other connections may have had the same refusal
		s.tokens.putOff(err)
	}
	return done, next, err
}
