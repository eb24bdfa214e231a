package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/storestream/storestream/poller"
	"go.uber.org/zap"
)

// ClientConfig is what a Client works with.
type ClientConfig struct {
	// BaseURL is the service's address with its version segment, without a slash at the end (one is taken off).
	BaseURL string
	// APIKey is sent as it is; "": fetched from the service, and again when it is refused.
	APIKey string
	// MaxRequestsPerSecond is the ceiling for all resources together; 0: 10.
	MaxRequestsPerSecond float64
	// RequestTimeout bounds one attempt, its body included; 0: 30 s.
	RequestTimeout time.Duration
	// Attempts is how often a request is tried that fails or is refused for its rate; 0: often enough to get over what passes. 1: who asks is a
	// person, who wants the answer and not patience.
	Attempts int
	// Now is our clock; nil: time.Now. Waits use the real one.
	Now func() time.Time
	Log *zap.Logger // nil: none
}

const (
	// maxFailures is how often one request is tried when the service fails or does not answer: some 15 s with the waits between.
	// Then the read ends; what it has read stays published.
	maxFailures = 6
	// maxRefusals is how often one request may be refused for the rate before the read ends with an error that says so.
	maxRefusals = 12
	// maxRenewals is how many new keys one request may ask for: one that expired, and one more that was revoked while it waited.
	maxRenewals = 2
	// maxConnections is enough for one request of each resource.
	maxConnections = 8
)

// Client is the one way to the service: one key, one limiter, one comparison of clocks for all resources. It is safe for concurrent use.
type Client struct {
	base    string
	timeout time.Duration
	// How often a request is tried that fails, and that is refused for its rate.
	maxFailures, maxRefusals int

	http  *http.Client
	limit *limiter
	keys  *keyring
	clock *clock
	log   *zap.Logger
	wide  atomic.Bool // the service cuts days in another zone than UTC, as a source found out
}

// NewClient returns a client; it sends nothing. An error means that cfg.BaseURL is not an http address.
func NewClient(cfg ClientConfig) (*Client, error) {
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
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = maxConnections, maxConnections
	c := &Client{
		base:        strings.TrimRight(cfg.BaseURL, "/"),
		timeout:     cfg.RequestTimeout,
		maxFailures: maxFailures,
		maxRefusals: maxRefusals,
		http:        &http.Client{Transport: transport, CheckRedirect: stayHere},
		limit:       newLimiter(cfg.MaxRequestsPerSecond),
		clock:       &clock{now: cfg.Now},
		log:         cfg.Log,
	}
	if cfg.Attempts > 0 {
		c.maxFailures, c.maxRefusals = cfg.Attempts, cfg.Attempts
	}
	c.clock.warn = func() {
		c.log.Warn("the service sends no Date header: days are closed by the local clock alone, so keep it right")
	}
	c.keys = newKeyring(cfg.APIKey, c.fetchKey)
	return c, nil
}

// State is what the status page shows of the way to the service.
type State struct {
	// RequestsPerSecond is the rate allowed now, RefusedSince since when the service has been refusing requests for their rate (zero: it
	// is not).
	RequestsPerSecond float64
	RefusedSince      time.Time
	// ClockSkew is the service's clock minus ours, to about a second. HasClock is false where the service sends no Date.
	ClockSkew time.Duration
	HasClock  bool
}

// State of the client now.
func (c *Client) State() State {
	var s State
	s.RequestsPerSecond, s.RefusedSince = c.limit.state()
	s.ClockSkew, s.HasClock = c.clock.gap()
	return s
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// counters is what one resource counts of its requests.
type counters struct {
	request func(code string)
	refused func(seconds float64)
}

// call is one request with its retries.
type call struct {
	path, query string
	open        bool // needs no key
	// check judges a 200; an error that is errCut is a broken connection. nil: no check.
	check func(body []byte) error
	count counters
	body  *bytes.Buffer // receives the body

	key      string // the key in use
	refusals int
	failures int
	renewals int
	backoff  *backoff.ExponentialBackOff
}

// do sends the request until it is answered, and leaves the body of the 200 in r.body.
//
// It returns a *statusError for a 400 or a 404, which the caller may understand; a *poller.HoldError for what only a person can mend;
// the cause of ctx; or what kept going wrong.
func (c *Client) do(ctx context.Context, r *call) error {
	r.backoff = backoff.NewExponentialBackOff()
	r.backoff.InitialInterval, r.backoff.MaxInterval = 250*time.Millisecond, 20*time.Second
	r.backoff.Multiplier = 2
	for {
		if err := c.limit.wait(ctx, r.count.refused); err != nil {
			return err
		}
		// The key is looked up after the wait: it may have expired and been replaced meanwhile.
		if err := c.useKey(ctx, r); err != nil {
			return err
		}
		sent := c.clock.now()
		began := time.Now()
		head, err := c.attempt(ctx, r) //nolint:bodyclose // attempt has read and closed it
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if head != nil {
			c.clock.observe(head.Header, sent)
		}
		done, err := c.judge(ctx, r, head, err, began)
		if done || err != nil {
			return err
		}
	}
}

func (c *Client) useKey(ctx context.Context, r *call) (err error) {
	if !r.open {
		r.key, err = c.keys.get(ctx, "")
	}
	return err
}

// attempt sends the request once. head is nil where there was no answer; err is what went wrong before the body was read whole.
func (c *Client) attempt(ctx context.Context, r *call) (head *http.Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	address := c.base + r.path
	if r.query != "" {
		address += "?" + r.query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, reason(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "storestream")
	if !r.open {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	head, err = c.http.Do(req)
	if err != nil {
		if head != nil { // a redirect that is not followed
			head.Body.Close()
		}
		r.count.request("0")
		return nil, reason(err)
	}
	defer head.Body.Close()
	r.count.request(strconv.Itoa(head.StatusCode))
	return head, readBody(r.body, head.Body)
}

// judge decides what an answer means. done: r.body holds what was asked for. Neither done nor an error: send again.
func (c *Client) judge(ctx context.Context, r *call, head *http.Response, err error, began time.Time) (done bool, _ error) {
	var elsewhere *redirectError
	if errors.As(err, &elsewhere) {
		return false, &poller.HoldError{What: r.path, Err: elsewhere}
	}
	if head == nil {
		return false, c.failed(ctx, r, err)
	}
	switch status := head.StatusCode; {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return false, c.refused(r, head, began)
	case status == http.StatusUnauthorized && !r.open:
		c.limit.accepted(began)
		return false, c.renew(ctx, r)
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500:
		return false, c.failed(ctx, r, &statusError{status: status, code: errorCode(r.body.Bytes()), path: r.path})
	case status != http.StatusOK:
		c.limit.accepted(began)
		return false, final(&statusError{status: status, code: errorCode(r.body.Bytes()), path: r.path})
	}
	c.limit.accepted(began)
	if err == nil && r.check != nil {
		err = r.check(r.body.Bytes())
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errTooBig):
		return false, &poller.HoldError{What: r.path, Err: err}
	case errors.Is(err, errNotJSON):
		// A gateway's error page with status 200 goes away by itself; another site's home page does not. Both are tried again.
		return false, c.failed(ctx, r, fmt.Errorf("status 200, but %w: store.base_url may not be the service", err))
	}
	return false, c.failed(ctx, r, err)
}

// final is the error for a status that will not change: 400 and 404 are left to the caller.
func final(e *statusError) error {
	if e.status == http.StatusBadRequest || e.status == http.StatusNotFound {
		return e
	}
	return &poller.HoldError{What: e.Error()}
}

// refused notes a 429 or 503 for all workers. The wait is in the limiter, before the next attempt of anyone.
func (c *Client) refused(r *call, head *http.Response, began time.Time) error {
	c.limit.refused(began, retryAfter(head.Header, c.clock.now()))
	if r.refusals++; r.refusals >= c.maxRefusals {
		return &RateError{Path: r.path, Status: head.StatusCode, Times: r.refusals}
	}
	return nil
}

// renew gets another key after a 401, unless the key was configured.
func (c *Client) renew(ctx context.Context, r *call) error {
	if c.keys.configured {
		return &poller.HoldError{What: r.path + " answered 401: the service does not accept store.api_key. " +
			"Set a valid key, or leave it empty and one is fetched"}
	}
	if r.renewals++; r.renewals > maxRenewals {
		return fmt.Errorf("%s answered 401 to a key that %s had just given", r.path, keyPath)
	}
	_, err := c.keys.get(ctx, r.key)
	return err
}

// failed waits before the next attempt, or gives up.
func (c *Client) failed(ctx context.Context, r *call, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no complete answer within %s (store.request_timeout)", c.timeout)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errCut) {
		err = errors.New("the connection broke in the middle of the answer")
	}
	if r.failures++; r.failures >= c.maxFailures {
		var status *statusError
		switch {
		case errors.As(err, &status) && r.failures > 1:
			return fmt.Errorf("%w, %d times", err, r.failures)
		case errors.As(err, &status):
			return err
		case r.failures > 1:
			return fmt.Errorf("%s: tried %d times: %w", r.path, r.failures, err)
		}
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return sleep(ctx, r.backoff.NextBackOff())
}

// fetchKey asks the service for a key.
func (c *Client) fetchKey(ctx context.Context) (key string, err error) {
	r := &call{path: keyPath, open: true, body: new(bytes.Buffer), count: counters{func(string) {}, func(float64) {}}}
	r.check = func(body []byte) error {
		key, err = readKey(body)
		return err
	}
	if err := c.do(ctx, r); err != nil {
		var status *statusError
		if errors.As(err, &status) && status.status < 500 {
			return "", &poller.HoldError{What: "no API key could be fetched", Err: err}
		}
		return "", err
	}
	return key, nil
}
