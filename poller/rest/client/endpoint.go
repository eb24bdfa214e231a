package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// Endpoint sends the requests to one path of the service. It reuses its memory from one answer to the next,
// so each reader has its own.
type Endpoint struct {
	client *Client
	path   string
	open   bool // needs no key
	// parse finds the rows in the body of a 200, with the memory of earlier ones. An error is a failed try.
	parse func(body []byte, rows [][]byte) (Page, error)
	// counted gets the status of each answer, "0" if none came. waited gets the seconds waited because the
	// service had refused for the rate.
	counted func(code string)
	waited  func(seconds float64)

	// Of the newest request: its key, and its end.
	key   string
	timer *time.Timer
	end   context.CancelFunc
	// Of the newest answer: its headers, Date and Age, as Page has them, its body and the rows in it.
	head  http.Header
	date  schemas.Instant
	age   time.Duration
	body  bytes.Buffer
	large bool // the body has the Client's place for a large one
	rows  [][]byte
}

// Endpoint returns that of the path which follows the base address. counted gets the status of each answer,
// "0" if none came. waited gets the seconds waited because the service had refused for the rate.
func (c *Client) Endpoint(path string, counted func(code string), waited func(seconds float64)) *Endpoint {
	return &Endpoint{client: c, path: path, parse: openPage, counted: counted, waited: waited}
}

// Release gives back the memory of the last Page. The caller no longer needs its rows.
func (e *Endpoint) Release() {
	e.body.Reset()
	if e.large {
		e.large, e.body = false, bytes.Buffer{}
		<-e.client.large
	}
	clear(e.rows) // they would keep the text
}

// Page sends a request until it gets a good answer, and finds the rows in it. They are good until the next
// call, or until Release, which is due soon: while an endpoint has a large answer, others wait with theirs.
//
// The error is a *RequestError, if the service refuses the request or does not answer it well after several
// tries; a *poller.BlockedError for a fault that only a person can mend; or the cause of ctx. If the service
// refuses this request (Refusal), Date and Age are those of the refusal.
//
// A gateway's error page with status 200 goes away by itself. Another site's home page does not. They look
// alike, so both are tried again. So is a 4xx that is not in the service's description: the description does
// not say how the service refuses for the rate, and may mean a 403 or a 420 by it. Only an answer that says
// that it is about the rate slows the others down.
//
// most limits the tries of a request that fails, if it is less than configured. Zero means as configured.
func (e *Endpoint) Page(ctx context.Context, query string, most int) (p Page, err error) {
	c, renewals, spent := e.client, 0, time.Duration(0)
	most = cmp.Or(most, c.cfg.Attempts)
	pauses := backoff.ExponentialBackOff{InitialInterval: 250 * time.Millisecond, MaxInterval: 20 * time.Second,
		Multiplier: 2, RandomizationFactor: 0.5}
	e.Release()
	for tries := 1; ; tries++ {
		if err = c.limit.wait(ctx, e.path, e.waited); err != nil {
			return p, err
		}
		req, err := e.request(ctx, query) // after the wait, during which the key may have been replaced
		if err != nil {
			return p, err
		}
		began, sent := time.Now(), c.clock.Now()
		answer, err := c.http.Do(req)
		failed := e.receive(answer, err, sent, query)
		if failed == nil {
			p, err = e.parse(e.body.Bytes(), e.rows)
			e.rows = p.Rows
			if err != nil {
				failed = e.failed(query, http.StatusOK, err)
			}
		}
		p.Date, p.Age = e.date, e.age
		if ctx.Err() != nil {
			return p, context.Cause(ctx)
		}
		if failed == nil {
			c.accepted(e, began)
			return p, nil
		}
		e.Release() // before the wait: others may want to read large answers meanwhile
		failed.Slow = time.Since(began).Truncate(c.cfg.RequestTimeout / 2)
		spent += time.Since(began)
		last := tries >= c.cfg.Attempts || spent >= max(longestTries, 2*c.cfg.RequestTimeout) ||
			tries >= unclearTries && unclear(failed.Status) && !failed.Rate
		switch status := failed.Status; {
		case failed.Rate:
			if c.pause(e, began, failed); !last {
				continue // the limiter waits
			}
			return p, failed
		case errors.Is(failed.Err, errTooMuch):
			return p, &poller.BlockedError{What: "the service's answers cannot be used", Err: failed}
		case !e.open && failed.aboutKey():
			again, err := c.renew(ctx, e, failed, renewals)
			if err != nil {
				return p, err
			}
			if again {
				renewals++
				continue
			}
		case status == 0 || status == http.StatusOK:
			c.http.CloseIdleConnections() // the fault may have broken those that wait beside this one
		case status < http.StatusInternalServerError && !unclear(status):
			c.accepted(e, began)
			return p, failed
		}
		switch {
		case !last && tries < most:
			if err = wait.For(ctx, pauses.NextBackOff()); err != nil {
				return p, err
			}
		case errors.As(failed.Err, new(*httpclient.RedirectError)):
			return p, &poller.BlockedError{What: "the service's answers cannot be used", Err: failed}
		default:
			return p, failed
		}
	}
}

// failed describes the answer that is an error, or that no good one came. A body that may hold rows or a key
// is never quoted.
func (e *Endpoint) failed(query string, status int, err error) *RequestError {
	failed := &RequestError{Path: e.path, Query: query, Status: status, Err: err}
	if status != http.StatusOK || errors.Is(err, errFailed) && len(e.rows) == 0 {
		failed.explain(e.body.Bytes())
	}
	failed.Rate = aboutRate(status, failed.Code, e.head)
	return failed
}

// request returns the request for query, with the key of this moment. It ends with the client's timeout.
func (e *Endpoint) request(ctx context.Context, query string) (_ *http.Request, err error) {
	if !e.open {
		if e.key, err = e.client.key(ctx, ""); err != nil {
			return nil, err
		}
	}
	address := e.client.cfg.BaseURL + e.path
	if query != "" {
		address += "?" + query
	}
	ctx, e.end = context.WithCancel(ctx)
	e.timer = time.AfterFunc(e.client.cfg.RequestTimeout, e.end)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "storestream")
	// No cache on the way may answer with an earlier state. (Pragma is for caches of HTTP/1.0.)
	req.Header.Set("Cache-Control", "no-cache, no-store")
	req.Header.Set("Pragma", "no-cache")
	if !e.open {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	return req, nil
}

// receive takes the answer to the request sent at sent, or the error in its place. If the answer is a 200
// with a usable body, receive returns nil, and e.body has the body.
func (e *Endpoint) receive(answer *http.Response, err error, sent time.Time, query string) *RequestError {
	defer e.end()
	defer e.timer.Stop()
	e.head, e.date, e.age = nil, schemas.MinInstant, 0
	status := 0
	if err == nil {
		defer answer.Body.Close()
		status, e.head = answer.StatusCode, answer.Header
		e.date, e.age = e.client.clock.observe(answer.Header, sent)
	}
	e.counted(strconv.Itoa(status))
	switch {
	case err != nil:
		if u, ok := errors.AsType[*url.Error](err); ok { // its text has the address, and failed names the path
			err = u.Err
		}
	case status != http.StatusOK:
		_, _ = e.body.ReadFrom(io.LimitReader(answer.Body, maxNote)) // the status says enough
		return e.failed(query, status, nil)
	default:
		if err = e.read(answer); err == nil {
			err = legible(answer.Header, e.body.Bytes())
		}
	}
	if err == nil {
		return nil
	}
	if !e.timer.Stop() { // it has ended the request
		err = fmt.Errorf("no complete answer within %s (store.request_timeout)", e.client.cfg.RequestTimeout)
	}
	e.body.Reset() // it is not whole
	return e.failed(query, status, err)
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

// accepted tells the limiter that the service did not refuse the request sent at sent for its rate.
func (c *Client) accepted(e *Endpoint, sent time.Time) {
	if refused := c.limit.accepted(e.path, sent); refused >= longPause {
		c.cfg.Log.Info("the service no longer refuses requests for their rate",
			zap.String("path", e.path), zap.Duration("refused_for", refused))
	}
}

// pause stops the requests to the path for as long as a refusal asks for, or the limiter chooses. It logs a
// long pause when it begins: the reading stops meanwhile, which may be minutes.
func (c *Client) pause(e *Endpoint, sent time.Time, failed *RequestError) {
	after, why := retryAfter(e.head, c.clock.Now()), fmt.Sprintf("the service answered %d", failed.Status)
	until, news := c.limit.refused(e.path, sent, after, why)
	if news {
		c.cfg.Log.Warn("the service refuses requests for their rate: nothing is sent to the path for a while",
			zap.Error(failed), zap.String("path", e.path), zap.Int("status", failed.Status),
			zap.Duration("waits", time.Until(until).Round(time.Millisecond)), zap.Time("until", until.UTC()))
	}
}
