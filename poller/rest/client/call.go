package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// call is one request, which is sent until it is answered:
//
//	for again := true; again && err == nil; {
//		var req *http.Request
//		if req, err = r.prepare(ctx); err == nil {
//			again, err = r.judge(ctx, r.receive(r.client.http.Do(req)))
//		}
//	}
//
// The error is then a *RequestError, if the service refuses the request or does not answer it well after
// several tries; a *poller.BlockedError for a fault that only a person can mend; or the cause of ctx.
type call struct {
	client      *Client
	path, query string
	open        bool // needs no key
	count       Counters
	body        *body // receives the body of each answer
	// check looks at the body of a 200. An error is a failed try.
	check    func(body []byte) error
	pauses   backoff.ExponentialBackOff
	tries    int // that failed or were refused
	renewals int

	// Of the newest try: when it was sent, by the real clock and by the Client's, its key, and what ends it.
	began, sent time.Time
	key         string
	timer       *time.Timer
	end         context.CancelFunc
	// Of its answer: Date and Age, as Page has them, and the headers.
	date schemas.Instant
	age  time.Duration
	head http.Header
}

func newCall(c *Client, path, query string, body *body, count Counters) *call {
	pauses := backoff.ExponentialBackOff{InitialInterval: 250 * time.Millisecond, MaxInterval: 20 * time.Second,
		Multiplier: 2, RandomizationFactor: 0.5}
	return &call{client: c, path: path, query: query, body: body, count: count, pauses: pauses}
}

// prepare waits until the request may be sent, and returns it with the key of that moment.
func (r *call) prepare(ctx context.Context) (*http.Request, error) {
	c := r.client
	r.body.release() // before the wait: others may want to read large answers meanwhile
	if err := c.limit.wait(ctx, r.count.Refused); err != nil {
		return nil, err
	}
	if !r.open { // after the wait, during which the key may have been replaced
		var err error
		if r.key, err = c.key(ctx, ""); err != nil {
			return nil, err
		}
	}
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
	// No cache on the way may answer with an earlier state. (Pragma is for caches of HTTP/1.0.)
	req.Header.Set("Cache-Control", "no-cache, no-store")
	req.Header.Set("Pragma", "no-cache")
	if !r.open {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	r.began, r.sent = time.Now(), c.clock.Now()
	r.date, r.age, r.head = schemas.MinInstant, 0, nil
	ctx, r.end = context.WithCancel(ctx)
	r.timer = time.AfterFunc(c.timeout, r.end)
	return req.WithContext(ctx), nil
}

// receive takes what came of the request. It returns nil if the answer is good: its body is in r.body then.
func (r *call) receive(answer *http.Response, err error) *RequestError {
	defer r.end()
	defer r.timer.Stop()
	failed := &RequestError{Path: r.path, Query: r.query}
	code := 0
	if answer != nil {
		defer answer.Body.Close()
	}
	if err == nil {
		code = answer.StatusCode
		failed.Status, r.head = code, answer.Header
		r.date, r.age = r.client.clock.observe(answer.Header, r.sent)
	}
	r.count.Request(strconv.Itoa(code))
	switch {
	case err != nil:
		err = reason(err)
	case code != http.StatusOK:
		_ = r.body.readNote(answer.Body) // the status says enough
		failed.Code = errorCode(r.body.Bytes())
		return failed
	default:
		if err = r.body.read(answer, r.timer, r.client.timeout); err == nil {
			err = r.check(r.body.Bytes())
		}
	}
	if failed.Err = err; err == nil {
		return nil
	}
	if !r.timer.Stop() { // it has ended the request
		failed.Err = fmt.Errorf("no complete answer within %s (store.request_timeout)", r.client.timeout)
	}
	return failed
}

// judge returns whether to send the request again. It waits before that, if the fault may pass by itself.
// Otherwise it returns the error with which the request ends, nil after a good answer.
//
// A gateway's error page with status 200 goes away by itself. Another site's home page does not. They look
// alike, so both are tried again. So is a 4xx that is not in the service's description: the description does
// not say how the service refuses for the rate, and may mean a 403 or a 420 by it. If it says when to come
// again, it speaks of the rate.
func (r *call) judge(ctx context.Context, failed *RequestError) (again bool, err error) {
	c := r.client
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if failed == nil {
		r.accepted()
		return false, nil
	}
	r.body.release() // others may want to read large answers meanwhile
	r.tries++
	failed.Tries = r.tries
	if failed.ForRate() || unclear(failed.Status) && r.head.Get("Retry-After") != "" {
		r.pauseAll(failed.Status)
		if r.tries < c.maxTries {
			return true, nil // prepare waits
		}
		return false, failed
	}
	switch status := failed.Status; {
	case errors.Is(failed.Err, errTooLong) || errors.Is(failed.Err, errManyRows):
		return false, &poller.BlockedError{What: "the service's answers cannot be used", Err: failed}
	case status == 0 || status == http.StatusOK:
		c.http.CloseIdleConnections() // the fault may have broken those that wait beside this one
	case status == http.StatusUnauthorized && !r.open:
		r.accepted()
		return true, r.renew(ctx)
	case status < http.StatusInternalServerError && !unclear(status):
		r.accepted()
		return false, failed
	}
	if r.tries < c.maxTries {
		return true, wait.For(ctx, r.pauses.NextBackOff())
	}
	if errors.As(failed.Err, new(*httpclient.RedirectError)) {
		return false, &poller.BlockedError{What: "the service's answers cannot be used", Err: failed}
	}
	return false, failed
}

// unclear reports whether a refusal with status may be one for the rate. 400, 401 and 404 have another
// meaning, which the caller acts on.
func unclear(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound:
		return false
	}
	return status >= 400 && status < http.StatusInternalServerError
}

// accepted tells the limiter that the service did not refuse the newest try for its rate.
func (r *call) accepted() {
	if refused := r.client.limit.accepted(r.began); refused >= longPause {
		r.client.log.Info("the service no longer refuses requests for their rate",
			zap.Duration("refused_for", refused))
	}
}

// pauseAll stops all requests for as long as a refusal asks for, or the limiter chooses. It logs a long pause
// when it begins: all reading stops meanwhile, which may be minutes.
func (r *call) pauseAll(status int) {
	c := r.client
	until, news := c.limit.refused(r.began, retryAfter(r.head, c.clock.Now()),
		fmt.Sprintf("the service answered %d", status))
	if news {
		c.log.Warn("the service refuses requests for their rate: nothing is sent to it for a while",
			zap.String("path", r.path), zap.Int("status", status),
			zap.Duration("waits", time.Until(until).Round(time.Millisecond)), zap.Time("until", until.UTC()))
	}
}

// renew gets another key after a 401. A configured key is another one only if its file has changed since. If
// not, the next poll looks at the file.
func (r *call) renew(ctx context.Context) error {
	if chosen := r.client.apiKey; chosen.IsSet() {
		if chosen.Get() != r.key {
			return nil
		}
		return &poller.BlockedError{What: r.path + " answered 401: the service does not accept store.api_key. " +
			"Set a valid key, or leave it empty and storestream fetches one"}
	}
	if r.renewals++; r.renewals > maxRenewals {
		return fmt.Errorf("%s answered 401 to a key that %s had just given", r.path, keyPath)
	}
	_, err := r.client.key(ctx, r.key)
	return err
}
