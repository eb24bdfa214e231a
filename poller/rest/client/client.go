package client

import (
	"cmp"
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
	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
	"go.uber.org/zap"
)

// Config is what a Client works with.
type Config struct {
	// BaseURL is the service's address with its version segment. A slash at its end is dropped.
	BaseURL string
	// APIKey is sent as it is at that moment; none: one is fetched from the service, and again when the service
	// refuses it.
	APIKey rotation.Secret
	// Hidden hears of each key that is fetched; nil: nobody does.
	Hidden *rotation.Hidden
	// MaxRequestsPerSecond is the ceiling for all resources together; 0: 10.
	MaxRequestsPerSecond float64
	// RequestTimeout bounds one attempt, its body included; 0: 30 s.
	RequestTimeout time.Duration
	// Attempts is how often a request that fails or is refused for its rate is tried; 0: often enough to outlast
	// what passes by itself. `check` sets 1, because a person waits for its answer.
	Attempts int
	// Now is our clock; nil: time.Now. Waits use the real one.
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
	// maxRenewals is how many new keys one request may ask for: one after an expiry, and one more if that key is
	// revoked while the request waits.
	maxRenewals = 2
)

// Client sends the requests of all resources. It is safe for concurrent use.
type Client struct {
	base                     string
	timeout                  time.Duration
	maxFailures, maxRefusals int
	log                      *zap.Logger

	http  *http.Client
	limit *limiter
	// refusals are those by a status that the document does not give for the rate; told: the log has said so.
	refusals *refusals
	told     atomic.Bool
	keys     *keyring
	hidden   *rotation.Hidden // Config.Hidden
	clock    *Clock
	large    chan struct{} // see body
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
		refusals:    newRefusals(),
		clock:       newClock(cfg.Now, cfg.Log),
		large:       make(chan struct{}, largeBodies),
	}
	if cfg.Attempts > 0 {
		c.maxFailures, c.maxRefusals = cfg.Attempts, cfg.Attempts
	}
	c.keys, c.hidden = newKeyring(cfg.APIKey, c.fetchKey), cfg.Hidden
	return c, nil
}

// State is what the status page shows of the way to the service.
type State struct {
	// RequestsPerSecond is the rate allowed now.
	RequestsPerSecond float64
	// RefusedSince is since when the service has been refusing requests for their rate; zero: it accepts them.
	// Until RefusedUntil none is sent, and Refusal says why, for people.
	RefusedSince, RefusedUntil time.Time
	Refusal                    string
	// ClockSkew is the service's clock minus ours, to about a second. HasClock is false where the service sends
	// no Date.
	ClockSkew time.Duration
	HasClock  bool
}

// State of the client now.
func (c *Client) State() State {
	var s State
	s.RequestsPerSecond, _ = c.limit.state()
	s.RefusedSince, s.RefusedUntil, s.Refusal = c.limit.refusal()
	s.ClockSkew, s.HasClock = c.clock.gap()
	return s
}

// Clock compares the service's clock with ours.
func (c *Client) Clock() *Clock { return c.clock }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Counters count the requests of one resource. Each may be called from any goroutine that sends.
type Counters struct {
	// Request gets the status of each answer, "0" where none came.
	Request func(code string)
	// Refused gets the seconds waited because the service had refused for the rate.
	Refused func(seconds float64)
}

var uncounted = Counters{Request: func(string) {}, Refused: func(float64) {}}

// call is one request with its retries.
type call struct {
	path, query string
	open        bool // needs no key
	count       Counters
	body        *body // receives the body of each answer
	// check looks at the body of a 200. An error is a failed attempt.
	check func(body []byte) error

	answer   Answer // what the newest answer's headers say
	key      string // the key that the attempt in hand sends
	refusals int
	unclear  int // the status of those that may not have been for the rate; 0: there were none
	failures int
	renewals int
	backoff  *backoff.ExponentialBackOff
}

// do sends the request until it is answered, and leaves the body of the 200 in r.body.
//
// It returns a *StatusError for a 4xx, which the caller may understand; a *poller.HoldError for what only a
// person can mend; a *RateError; the cause of ctx; or what kept going wrong.
func (c *Client) do(ctx context.Context, r *call) error {
	r.backoff = backoff.NewExponentialBackOff()
	r.backoff.InitialInterval, r.backoff.MaxInterval = 250*time.Millisecond, 20*time.Second
	r.backoff.Multiplier = 2
	for {
		if err := c.limit.wait(ctx, r.count.Refused); err != nil {
			return err
		}
		if !r.open { // after the wait, during which the key may have expired and been replaced
			var err error
			if r.key, err = c.keys.get(ctx, ""); err != nil {
				return err
			}
		}
		sent := c.clock.Now()
		began := time.Now()
		head, err := c.attempt(ctx, r) //nolint:bodyclose // attempt has read and closed it
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.answer = (Answer{}); head != nil {
			r.answer = c.clock.observe(head.Header, sent)
		}
		done, err := c.understand(ctx, r, head, err, began)
		if done || err != nil {
			return err
		}
	}
}

// attempt sends the request once. head is nil where there was no answer; err is what went wrong before the
// body was read whole.
func (c *Client) attempt(ctx context.Context, r *call) (head *http.Response, err error) {
	r.body.release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = context.DeadlineExceeded
		}
	}()
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
	// Whatever lies between us and the service, its answer is to be of now. (Pragma is for caches of HTTP/1.0.)
	req.Header.Set("Cache-Control", "no-cache, no-store")
	req.Header.Set("Pragma", "no-cache")
	if !r.open {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	head, err = c.http.Do(req)
	if err != nil {
		if head != nil { // a redirect that is not followed
			head.Body.Close()
		}
		r.count.Request("0")
		return nil, reason(err)
	}
	defer head.Body.Close()
	r.count.Request(strconv.Itoa(head.StatusCode))
	if head.StatusCode != http.StatusOK {
		return head, r.body.readNote(head.Body)
	}
	return head, r.body.read(head.Body, head.ContentLength, ctx.Done(), func() (again func()) {
		timer.Stop() // the wait for others is not the service's
		return func() { timer.Reset(c.timeout) }
	})
}

// understand decides what an answer means. done: r.body holds what was asked for. Neither done nor an error:
// send the request again.
func (c *Client) understand(
	ctx context.Context, r *call, head *http.Response, err error, began time.Time,
) (done bool, _ error) {
	if elsewhere, ok := errors.AsType[*redirectError](err); ok {
		return false, &poller.HoldError{What: r.path, Err: elsewhere}
	}
	if head == nil {
		return false, c.failed(ctx, r, err)
	}
	status := head.StatusCode
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return false, c.refused(r, head, began)
	case status == http.StatusUnauthorized && !r.open:
		c.accepted(began)
		return false, c.renew(ctx, r)
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500:
		return false, c.failed(ctx, r, &StatusError{Status: status, Code: errorCode(r.body.Bytes()), Path: r.path})
	}
	if unclear(status) && c.again(r, head, began) {
		return false, nil
	}
	c.accepted(began)
	if status == http.StatusOK || unclear(status) {
		c.refusals.answer(r.path, unclear(status))
	}
	if status != http.StatusOK {
		return false, &StatusError{Status: status, Code: errorCode(r.body.Bytes()), Path: r.path}
	}
	if err == nil {
		err = r.check(r.body.Bytes())
	}
	switch {
	case err == nil:
		c.sayUnclear(r)
		return true, nil
	case errors.As(err, new(*tooLongError)), errors.Is(err, errManyRows):
		r.body.release()
		return false, &poller.HoldError{What: r.path, Err: err}
	case errors.Is(err, errNotJSON):
		// A gateway's error page with status 200 goes away by itself; another site's home page does not. Nothing
		// tells them apart, so both are tried again.
		return false, c.failed(ctx, r, fmt.Errorf("status 200, but %w: store.base_url may not be the service", err))
	}
	return false, c.failed(ctx, r, err)
}

// refused notes a 429 or 503 for all resources. The limiter waits before anyone's next attempt.
func (c *Client) refused(r *call, head *http.Response, began time.Time) error {
	c.pause(r, head, began)
	if r.refusals++; r.refusals >= c.maxRefusals {
		return &RateError{Path: r.path, Status: head.StatusCode, Times: r.refusals}
	}
	return nil
}

// again notes a refusal for what may be the rate, like a 429. It returns false where that is not so (see
// refusals). A service that says when to come again speaks of the rate.
func (c *Client) again(r *call, head *http.Response, began time.Time) bool {
	most := c.refusals.patience(r.path)
	if head.Header.Get("Retry-After") != "" {
		most = maxRefusals
	}
	if r.refusals++; r.refusals >= min(most, c.maxRefusals) {
		return false
	}
	r.unclear = head.StatusCode
	c.pause(r, head, began)
	return true
}

// pause has nobody send for as long as a refusal asks for, or the limiter chooses, and tells a long pause as
// it begins: nothing is read meanwhile, which may be minutes. What the service asked for is told as a number,
// for its text may be anything.
func (c *Client) pause(r *call, head *http.Response, began time.Time) {
	now := c.clock.Now()
	asked, why := askedFor(head.Header, now), fmt.Sprintf("the service answered %d", head.StatusCode)
	switch {
	case asked > maxRetryAfter:
		why += fmt.Sprintf(" and asked for a pause of %s, of which %s are believed", asked, maxRetryAfter)
	case asked > 0:
		why += " and asked for a pause of " + asked.String()
	}
	until, news := c.limit.refused(began, retryAfter(head.Header, now), why)
	if news {
		c.log.Warn("the service refuses requests for their rate: nothing is sent to it for a while",
			zap.String("path", r.path), zap.Int("status", head.StatusCode), zap.Duration("asked_for", asked),
			zap.Duration("waits", time.Until(until).Round(time.Millisecond)), zap.Time("until", until.UTC()))
	}
}

// accepted notes that the service did not refuse a request sent at began for its rate.
func (c *Client) accepted(began time.Time) {
	if refused := c.limit.accepted(began); refused > 0 {
		c.log.Info("the service no longer refuses requests for their rate", zap.Duration("refused_for", refused))
	}
}

// sayUnclear tells once that what was refused with r.unclear was answered after a pause.
func (c *Client) sayUnclear(r *call) {
	if r.unclear != 0 && !c.told.Swap(true) {
		c.log.Warn("the service refuses for the rate of requests with a status that does not say so: what is "+
			"refused with it is asked for again, more slowly", zap.Int("status", r.unclear))
	}
}

// renew gets another key after a 401. Of one that was configured there is another where its file has changed
// since; else the next poll looks at the file.
func (c *Client) renew(ctx context.Context, r *call) error {
	if chosen := c.keys.configured; chosen.IsSet() {
		if chosen.Get() != r.key {
			return nil
		}
		return &poller.HoldError{What: r.path + " answered 401: the service does not accept store.api_key. " +
			"Set a valid key, or leave it empty and storestream fetches one"}
	}
	if r.renewals++; r.renewals > maxRenewals {
		return fmt.Errorf("%s answered 401 to a key that %s had just given", r.path, keyPath)
	}
	_, err := c.keys.get(ctx, r.key)
	return err
}

// failed waits before the next attempt, or gives up.
func (c *Client) failed(ctx context.Context, r *call, err error) error {
	r.body.release() // others may want to read large answers meanwhile
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no complete answer within %s (store.request_timeout)", c.timeout)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errCut) {
		err = errors.New("the connection broke in the middle of the answer")
	}
	answered := errors.As(err, new(*StatusError))
	if !answered {
		c.http.CloseIdleConnections() // what broke this connection may have broken those that wait beside it
	}
	if r.failures++; r.failures < c.maxFailures {
		return wait.For(ctx, r.backoff.NextBackOff())
	}
	if !answered { // which names the path itself
		err = fmt.Errorf("%s: %w", r.path, err)
	}
	if r.failures > 1 {
		err = fmt.Errorf("%w (tried %d times)", err, r.failures)
	}
	return err
}

// fetchKey asks the service for a key.
func (c *Client) fetchKey(ctx context.Context) (key string, err error) {
	r := &call{path: keyPath, open: true, body: &body{large: c.large}, count: uncounted}
	r.check = func(body []byte) error {
		key, err = readKey(body)
		return err
	}
	err = c.do(ctx, r)
	r.body.release()
	if status := Refusal(err); status != nil {
		err = &poller.HoldError{What: "no API key could be fetched", Err: status}
	}
	c.hidden.Add("store.api_key", key)
	return key, err
}
