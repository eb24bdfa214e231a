package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/poller"
	"go.uber.org/zap"
)

// Config has the settings and dependencies of a Client.
type Config struct {
	// BaseURL is the service's address with its version segment. A slash at its end is dropped.
	BaseURL string
	// APIKey is sent as it is at that moment. If it is empty, the client fetches one, and another when the
	// service refuses it.
	APIKey rotation.Secret
	// Hidden, if set, receives each key that is fetched.
	Hidden *rotation.Hidden
	// MaxRequestsPerSecond is the ceiling for all resources together. Zero means 10.
	MaxRequestsPerSecond float64
	// RequestTimeout bounds one attempt, its body included. Zero means 30 s.
	RequestTimeout time.Duration
	// Attempts is how often a request that fails or is refused for its rate is tried; 0: often enough to
	// outlast what passes by itself. `check` sets 2, because a person waits for its answer.
	Attempts int
	// Now is our clock. Nil means time.Now. Waits use the real one.
	Now func() time.Time
	Log *zap.Logger // nil: none
	// HTTP sends the requests. Redirects and timeouts are the Client's own. If HTTP is nil, it is
	// httpclient.New(nil, RequestTimeout).
	HTTP *http.Client
}

const (
	// maxFailures is how often one request is tried when the service fails or does not answer: some 15 s with
	// the waits between. Then the read ends; what it has read stays published.
	maxFailures = 6
	// maxRefusals is how often one request may be refused for the rate before the read ends with a RateError.
	maxRefusals = 12
	// maxRenewals is how many new keys one request may ask for: one after an expiry, and one more if that key
	// is revoked while the request waits.
	maxRenewals = 2
)

// Client sends the requests of all resources. It is safe for concurrent use.
type Client struct {
	base                     string
	timeout                  time.Duration
	maxFailures, maxRefusals int
	log                      *zap.Logger

	http        *http.Client
	limit       *limiter
	saidUnclear atomic.Bool // the log has said that some refusals for the rate do not say so
	keys        *keyring
	hidden      *rotation.Hidden // Config.Hidden
	clock       *Clock
	large       chan struct{} // see body
}

// New returns a client; it sends nothing. An error means that cfg.BaseURL is not an http address.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" {
		return nil, fmt.Errorf("store.base_url: expected an address such as https://store.example/v1")
	}
	if cfg.MaxRequestsPerSecond <= 0 {
		cfg.MaxRequestsPerSecond = 10
	}
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = 30 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, zap.NewNop())
	if cfg.HTTP == nil {
		cfg.HTTP = httpclient.New(nil, cfg.RequestTimeout)
	}
	c := &Client{
		base:        strings.TrimRight(cfg.BaseURL, "/"),
		timeout:     cfg.RequestTimeout,
		maxFailures: maxFailures,
		maxRefusals: maxRefusals,
		log:         cfg.Log,
		http:        &http.Client{Transport: cfg.HTTP.Transport, CheckRedirect: stayHere},
		limit:       newLimiter(cfg.MaxRequestsPerSecond),
		clock:       newClock(cfg.Now, cfg.Log),
		large:       make(chan struct{}, largeBodies),
	}
	if cfg.Attempts > 0 {
		c.maxFailures, c.maxRefusals = cfg.Attempts, cfg.Attempts
	}
	c.keys, c.hidden = newKeyring(cfg.APIKey, c.fetchKey), cfg.Hidden
	return c, nil
}

// State is the way to the service, as the status page shows it.
type State struct {
	// RequestsPerSecond is the rate allowed now.
	RequestsPerSecond float64
	// RefusedSince is the time since which the service refuses requests for their rate. Zero if it accepts
	// them. No request is sent until RefusedUntil, and Refusal is the reason, for people.
	RefusedSince, RefusedUntil time.Time
	Refusal                    string
	// ClockSkew is the service's clock minus ours, to about a second. HasClock is false if the service sends no
	// Date.
	ClockSkew time.Duration
	HasClock  bool
}

// State of the client now.
func (c *Client) State() State {
	s := c.limit.state()
	s.ClockSkew, s.HasClock = c.clock.gap()
	return s
}

// Clock compares the service's clock with ours.
func (c *Client) Clock() *Clock { return c.clock }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Counters count the requests of one resource. Each may be called from any goroutine that sends.
type Counters struct {
	// Request gets the status of each answer, "0" if none came.
	Request func(code string)
	// Refused gets the seconds waited because the service had refused for the rate.
	Refused func(seconds float64)
}

var uncounted = Counters{Request: func(string) {}, Refused: func(float64) {}}

// fetchKey asks the service for a key.
func (c *Client) fetchKey(ctx context.Context) (key string, err error) {
	r := &call{client: c, path: keyPath, open: true, body: &body{large: c.large}, count: uncounted}
	r.check = func(body []byte) error {
		key, err = readKey(body)
		return err
	}
	err = r.do(ctx)
	r.body.release()
	if status := Refusal(err); status != nil {
		err = &poller.BlockedError{What: "no API key could be fetched", Err: status}
	}
	c.hidden.Add("store.api_key", key)
	return key, err
}
