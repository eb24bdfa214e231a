package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// call is one request, which is sent until it is answered.
type call struct {
	client      *Client
	path, query string
	open        bool // needs no key
	count       Counters
	body        *body // receives the body of each answer
	// check looks at the body of a 200. An error is a failed attempt.
	check func(body []byte) error

	date     schemas.Instant // Date of the newest answer, as Page has it
	age      time.Duration   // Age of it
	key      string          // the key of the newest attempt
	refusals int
	unclear  int // the status of refusals that may not have been for the rate. Zero if there were none
	failures int
	renewals int
}

// do sends the request until it is answered, and leaves the body of the 200 in r.body.
//
// It returns a *StatusError for a 4xx, which the caller may understand; a *poller.BlockedError for a fault
// that only a person can mend; a *RateError; the cause of ctx; or the error of the last of several attempts.
func (r *call) do(ctx context.Context) error {
	c := r.client
	pauses := newPauses()
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
		began := time.Now()
		status, head, err := r.attempt(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case status == 0: // the connection failed
		case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
			r.pauseAll(head, status, began)
			if r.refusals >= c.maxRefusals {
				return &RateError{Path: r.path, Status: status, Times: r.refusals}
			}
			continue
		case status == http.StatusUnauthorized && !r.open:
			r.accepted(status, began)
			if err := r.renew(ctx); err != nil {
				return err
			}
			continue
		case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500:
			err = r.statusError(status)
		case unclear(status) && r.mayBeForRate(head):
			r.unclear = status
			r.pauseAll(head, status, began)
			continue
		case status != http.StatusOK:
			r.accepted(status, began)
			return r.statusError(status)
		default:
			r.accepted(status, began)
			if err == nil {
				err = r.check(r.body.Bytes())
			}
			if err == nil {
				r.reportUnclear()
				return nil
			}
		}
		if err := r.failed(err); err != nil {
			return err
		}
		if err := wait.For(ctx, pauses.NextBackOff()); err != nil {
			return err
		}
	}
}

func newPauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = 250*time.Millisecond, 20*time.Second, 2
	return b
}

// attempt sends the request once. status is zero if there was no answer. The error is the one that kept it
// from reading the body whole.
func (r *call) attempt(ctx context.Context) (status int, head http.Header, err error) {
	c, sent := r.client, r.client.clock.Now()
	r.date, r.age = schemas.MinInstant, 0
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
		return 0, nil, reason(err)
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
		if answer != nil { // a redirect that is not followed
			answer.Body.Close()
		}
		r.count.Request("0")
		return 0, nil, reason(err)
	}
	defer answer.Body.Close()
	r.count.Request(strconv.Itoa(answer.StatusCode))
	r.date, r.age = c.clock.observe(answer.Header, sent)
	if answer.StatusCode == http.StatusOK {
		err = r.body.read(answer.Body, answer.ContentLength, ctx.Done(), func() (again func()) {
			timer.Stop() // the wait for others is not the service's
			return func() { timer.Reset(c.timeout) }
		})
	} else {
		err = r.body.readNote(answer.Body)
	}
	return answer.StatusCode, answer.Header, err
}

func (r *call) statusError(status int) error {
	return &StatusError{Status: status, Code: errorCode(r.body.Bytes()), Path: r.path}
}

// accepted tells the limiter that the service did not refuse a request sent at began for its rate.
func (r *call) accepted(status int, began time.Time) {
	c := r.client
	if refused := c.limit.accepted(began); refused > 0 {
		c.log.Info("the service no longer refuses requests for their rate", zap.Duration("refused_for", refused))
	}
	if status == http.StatusOK || unclear(status) {
		c.limit.judge(r.path, status != http.StatusOK)
	}
}

// mayBeForRate reports whether to take a refusal for one for the rate (see limiter.patience).
// A service that says when to come again speaks of the rate.
func (r *call) mayBeForRate(h http.Header) bool {
	most := r.client.limit.patience(r.path)
	if h.Get("Retry-After") != "" {
		most = maxRefusals
	}
	return r.refusals+1 < min(most, r.client.maxRefusals)
}

// pauseAll counts a refusal, and stops all requests for as long as a refusal asks for, or the limiter
// chooses. It logs a long pause when it begins: all reading stops meanwhile, which may be minutes. The log
// has the service's wish as a number, because its text may be anything.
func (r *call) pauseAll(h http.Header, status int, began time.Time) {
	c := r.client
	r.refusals++
	now := c.clock.Now()
	asked, why := askedFor(h, now), fmt.Sprintf("the service answered %d", status)
	switch {
	case asked > maxRetryAfter:
		why += fmt.Sprintf(" and asked for a pause of %s; storestream waits %s", asked, maxRetryAfter)
	case asked > 0:
		why += " and asked for a pause of " + asked.String()
	}
	until, news := c.limit.refused(began, retryAfter(h, now), why)
	if news {
		c.log.Warn("the service refuses requests for their rate: nothing is sent to it for a while",
			zap.String("path", r.path), zap.Int("status", status), zap.Duration("asked_for", asked),
			zap.Duration("waits", time.Until(until).Round(time.Millisecond)), zap.Time("until", until.UTC()))
	}
}

// reportUnclear logs once that a request was answered after a pause that had been refused with r.unclear.
func (r *call) reportUnclear() {
	if c := r.client; r.unclear != 0 && !c.saidUnclear.Swap(true) {
		c.log.Warn("the service refuses for the rate of requests with a status that does not say so: requests "+
			"refused with it are sent again, more slowly", zap.Int("status", r.unclear))
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

// failed counts a failure. It returns nil if the request is to be sent again: the fault may pass by itself.
//
// A gateway's error page with status 200 goes away by itself. Another site's home page does not. They look
// alike, so both are tried again.
func (r *call) failed(err error) error {
	c := r.client
	r.body.release() // others may want to read large answers meanwhile
	elsewhere, redirected := errors.AsType[*redirectError](err)
	switch {
	case redirected:
		return &poller.BlockedError{What: r.path, Err: elsewhere}
	case errors.As(err, new(*tooLongError)), errors.Is(err, errManyRows):
		return &poller.BlockedError{What: r.path, Err: err}
	case errors.Is(err, errNotJSON):
		err = fmt.Errorf("status 200, but %w: store.base_url may not be the service", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no complete answer within %s (store.request_timeout)", c.timeout)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errCut) {
		err = errors.New("the connection broke in the middle of the answer")
	}
	answered := errors.As(err, new(*StatusError))
	if !answered {
		c.http.CloseIdleConnections() // the fault may have broken those that wait beside this one
	}
	if r.failures++; r.failures < c.maxFailures {
		return nil
	}
	if !answered { // a StatusError names the path itself
		err = fmt.Errorf("%s: %w", r.path, err)
	}
	if r.failures > 1 {
		err = fmt.Errorf("%w (tried %d times)", err, r.failures)
	}
	return err
}
