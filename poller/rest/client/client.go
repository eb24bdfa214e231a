package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"golang.org/x/time/rate"
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
	// Attempts is how often a request is tried if it fails or is refused for its rate. Zero means often enough
	// to outlast a fault that passes by itself. `check` sets 2, because a person waits for its answer.
	Attempts int
	// Now is our clock. Nil means time.Now. Waits use the real one.
	Now func() time.Time
	Log *zap.Logger // may be nil
	// HTTP sends the requests. It should follow no redirect, and its timeout is not used. If HTTP is nil, it
	// is httpclient.New(nil, RequestTimeout).
	HTTP *http.Client
}

const (
	// maxTries is how often one request is sent if the service fails, does not answer, or refuses it for the
	// rate. If the service fails, the tries and the waits between take some 30 s. Then the read ends. The rows
	// that it has read stay published.
	maxTries = 8
	// unclearTries is the same for a refusal that may have any meaning. These tries take some two seconds.
	unclearTries = 4
	// maxRenewals is how many new keys one request may ask for: one after an expiry, and one more if that key
	// is revoked while the request waits.
	maxRenewals = 2
	// longestTries bounds how long all tries of a request take together, without the waits between, or two
	// timeouts do. A service that hangs is reported after two tries.
	longestTries = 30 * time.Second
	// doubtEvery is the shortest time between two keys that are fetched because of a 403.
	doubtEvery = 10 * time.Second
)

// Client sends the requests of all resources. It is safe for concurrent use.
type Client struct {
	cfg   Config // with the defaults in place of zeros
	http  *http.Client
	limit *limiter
	turn  chan struct{} // holds one token: its holder may replace fetched

	// fetched is the key that was fetched last, a string. It never takes the place of a configured one: it
	// would be another account with other rights, and would hide that the chosen key is refused.
	fetched atomic.Value
	doubt   rate.Sometimes // limits how often a key is fetched because of a 403

	clock *Clock
	large chan struct{} // a place for each large body of the process (see Endpoint.read)
}

// New returns a client; it sends nothing. An error means that cfg.BaseURL is not an http address.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" {
		return nil, fmt.Errorf("store.base_url: expected an address such as https://store.example/v1")
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 30*time.Second)
	cfg.Attempts = cmp.Or(cfg.Attempts, maxTries)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, zap.NewNop())
	if cfg.HTTP == nil {
		cfg.HTTP = httpclient.New(nil, cfg.RequestTimeout)
	}
	c := &Client{
		cfg: cfg,
		// The timeout is the call's own: a body that waits for its turn does not run into it.
		http:  &http.Client{Transport: cfg.HTTP.Transport, CheckRedirect: stayHere},
		limit: newLimiter(cmp.Or(cfg.MaxRequestsPerSecond, 10)),
		clock: newClock(cfg.Now, cfg.Log),
		large: make(chan struct{}, largeBodies),
		turn:  make(chan struct{}, 1),
		doubt: rate.Sometimes{Interval: doubtEvery},
	}
	c.turn <- struct{}{}
	return c, nil
}

// State is the way to the service, as the status page shows it.
type State struct {
	// RequestsPerSecond is the rate allowed now.
	RequestsPerSecond float64
	// RefusedSince is the time since which the service refuses requests for their rate. Zero if it accepts
	// them. The longest of the pauses ends at RefusedUntil, and Refusal is its reason, for people.
	RefusedSince, RefusedUntil time.Time
	Refusal                    string
	// ClockSkew is the service's clock minus ours, to about a second. HasClock is false if the service sends
	// no Date.
	ClockSkew time.Duration
	HasClock  bool
}

// State of the client now.
func (c *Client) State() State {
	s := c.limit.state()
	s.ClockSkew, s.HasClock = c.clock.gap()
	return s
}

// Waits returns the pause that the requests to path have to keep, because the service refused them for their
// rate, or those to two other paths. The times are zero if there is none.
func (c *Client) Waits(path string) (why string, since, until time.Time) {
	p := c.limit.holds(path)
	return p.why, p.since, p.resume
}

// Clock compares the service's clock with ours.
func (c *Client) Clock() *Clock { return c.clock }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// keyPath is the path at which the service hands out keys, to anyone.
const keyPath = "/store-api-keys"

// key returns the key to send, and fetches the first one, or another if the service does not accept refused.
// When five resources are refused at once, the first to come fetches, and the others find another key than
// the one they were refused with. If each fetched its own, and a new key revoked the one before, four of them
// would stay refused. Nobody who has a key waits for another one to be fetched.
func (c *Client) key(ctx context.Context, refused string) (key string, err error) {
	if key = c.present(); key != refused {
		return key, nil
	}
	select {
	case <-c.turn:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	if key = c.present(); key != refused {
		return key, nil
	}
	e := c.Endpoint(keyPath, func(string) {}, func(float64) {})
	defer e.Release()
	e.open, e.parse = true, func(body []byte, _ [][]byte) (_ Page, err error) {
		key, err = readKey(body)
		return Page{}, err
	}
	_, err = e.Page(ctx, "", 0)
	if refused := Refusal(err); refused != nil {
		err = &poller.BlockedError{What: "no API key could be fetched", Err: refused}
	}
	if err != nil {
		return "", fmt.Errorf("fetching an API key: %w", err)
	}
	c.cfg.Hidden.Add("store.api_key", key)
	c.fetched.Store(key)
	return key, nil
}

// present is the configured key, or the one that was fetched last.
func (c *Client) present() string {
	if c.cfg.APIKey.IsSet() {
		return c.cfg.APIKey.Get()
	}
	key, _ := c.fetched.Load().(string)
	return key
}

// renew reports whether e may try again with another key, after its key was refused and so many renewals. A
// configured key is another one only if its file has changed since. If not, the next poll looks at the file.
//
// Some services answer 403, or 200 with an error, to a key that they have revoked. The same to the new key
// as well is an answer to the request. A resource without rights has one with each poll, so a key is then
// fetched every ten seconds at most.
func (c *Client) renew(ctx context.Context, e *Endpoint, failed *RequestError, renewals int) (bool, error) {
	switch fixed := c.cfg.APIKey.IsSet(); {
	case c.present() != e.key && renewals < maxRenewals:
		return true, nil
	case failed.Status != http.StatusUnauthorized && (fixed || renewals > 0):
		return false, nil
	case failed.Status != http.StatusUnauthorized:
		c.doubt.Do(func() { _, _ = c.key(ctx, e.key) })
		return c.present() != e.key, nil
	case fixed:
		return false, &poller.BlockedError{What: e.path + " answered 401: the service does not accept " +
			"store.api_key. Set a valid key, or leave it empty and storestream fetches one"}
	case renewals == maxRenewals:
		failed.Err = fmt.Errorf("%s had just given the key", keyPath)
		return false, failed
	}
	_, err := c.key(ctx, e.key)
	return true, err
}

// readKey takes the key out of the key endpoint's answer. Its errors never quote the body.
func readKey(body []byte) (string, error) {
	var answer struct {
		Key   string `json:"api_key"`
		Camel string `json:"apikey"` // read in any case, as the other is
	}
	err := json.Unmarshal(bytes.TrimPrefix(body, byteOrderMark), &answer)
	key := cmp.Or(answer.Key, answer.Camel)
	if err != nil || key == "" {
		return "", fmt.Errorf(`the answer has no string "api_key": it is %s`, shape(body))
	}
	if strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return "", errors.New(`"api_key" holds characters that cannot stand in a header`)
	}
	return key, nil
}
