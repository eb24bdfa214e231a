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
//		if err = r.ready(ctx); err == nil {
//			again, err = r.judge(ctx, r.send(ctx))
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
	check  func(body []byte) error
	pauses backoff.ExponentialBackOff

	began    time.Time       // when the newest try was sent
	date     schemas.Instant // Date of its answer, as Page has it
	age      time.Duration   // Age of it
	head     http.Header     // of it
	key      string          // of the newest try
	tries    int             // that failed or were refused
	renewals int
}

func (c *Client) newCall(path, query string, body *body, count Counters) *call {
	return &call{client: c, path: path, query: query, body: body, count: count, pauses: backoff.ExponentialBackOff{
		InitialInterval: 250 * time.Millisecond, MaxInterval: 20 * time.Second, Multiplier: 2, RandomizationFactor: 0.5}}
}

// ready waits until the request may be sent, and takes the key to send with it.
func (r *call) ready(ctx context.Context) (err error) {
	if err = r.client.limit.wait(ctx, r.count.Refused); err == nil && !r.open {
		r.key, err = r.client.keys.get(ctx, "") // after the wait, during which the key may have been replaced
	}
	return err
}

// send sends the request once. It returns nil if the answer is good: its body is in r.body then.
func (r *call) send(ctx context.Context) *RequestError {
	c, sent := r.client, r.client.clock.Now()
	failed := &RequestError{Path: r.path, Query: r.query}
	r.began, r.date, r.age, r.head = time.Now(), schemas.MinInstant, 0, nil
	r.body.release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := fmt.Errorf("no complete answer within %s (store.request_timeout)", c.timeout)
	timer := time.AfterFunc(c.timeout, func() { cancel(slow) })
	defer timer.Stop()
	because := func(err error) *RequestError {
		if failed.Err = err; errors.Is(context.Cause(ctx), slow) {
			failed.Err = slow
		}
		return failed
	}
	address := c.base + r.path
	if r.query != "" {
		address += "?" + r.query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return because(reason(err))
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "storestream")
	// No cache on the way may answer with an earlier state. (Pragma is for caches of HTTP/1.0.)
	req.Header.Set("Cache-Control", "no-cache, no-store")
	req.Header.Set("Pragma", "no-cache")
	if !r.open {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		if answer != nil { // a redirect, which is not followed
			answer.Body.Close()
		}
		r.count.Request("0")
		return because(reason(err))
	}
	defer answer.Body.Close()
	r.count.Request(strconv.Itoa(answer.StatusCode))
	failed.Status, r.head = answer.StatusCode, answer.Header
	r.date, r.age = c.clock.observe(answer.Header, sent)
	if answer.StatusCode != http.StatusOK {
		_ = r.body.readNote(answer.Body) // the status says enough
		failed.Code = errorCode(r.body.Bytes())
		return failed
	}
	err = r.body.read(ctx, answer, timer, c.timeout)
	if err == nil {
		err = r.check(r.body.Bytes())
	}
	if err != nil {
		return because(err)
	}
	return nil
}

// judge returns whether to send the request again. It waits before that, if the fault may pass by itself.
// Otherwise it returns the error with which the request ends, nil after a good answer.
//
// A gateway's error page with status 200 goes away by itself. Another site's home page does not. They look
// alike, so both are tried again. So is a 4xx that is not in the service's description: the description does
// not say how the service refuses for the rate, and may mean a 403 or a 420 by it.
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
	if failed.ForRate() {
		r.pauseAll(failed.Status)
		if r.tries < c.maxTries {
			return true, nil // ready waits
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
	case status < 400, status == http.StatusBadRequest, status == http.StatusUnauthorized,
		status == http.StatusNotFound:
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
	keys := r.client.keys
	if chosen := keys.configured; chosen.IsSet() {
		if chosen.Get() != r.key {
			return nil
		}
		return &poller.BlockedError{What: r.path + " answered 401: the service does not accept store.api_key. " +
			"Set a valid key, or leave it empty and storestream fetches one"}
	}
	if r.renewals++; r.renewals > maxRenewals {
		return fmt.Errorf("%s answered 401 to a key that %s had just given", r.path, keyPath)
	}
	_, err := keys.get(ctx, r.key)
	return err
}
