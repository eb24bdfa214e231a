package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/poller"
)

// RequestError is a request that the service refuses, or to which no good answer came. Its text states what
// was asked for and what came, and only then what that may mean.
type RequestError struct {
	Path, Query string
	// Status is that of the answer. Zero means that none came.
	Status int
	// Code is the service's machine-readable error code, "" if the body has none.
	Code string
	// Tries is how often the request was sent in vain.
	Tries int
	// Err is why no answer came, or why a 200 cannot be used. Nil if the status says it.
	Err error
}

func (e *RequestError) Error() string {
	text := e.Path
	if e.Query != "" {
		text += "?" + e.Query
	}
	if e.Status != 0 {
		text += strings.TrimRight(fmt.Sprintf(" answered %d %s", e.Status,
			cmp.Or(e.Code, http.StatusText(e.Status))), " ")
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Tries > 1 {
		text += fmt.Sprintf(" (tried %d times)", e.Tries)
	}
	if e.Status == http.StatusNotFound && e.Code == "" || errors.Is(e.Err, errNotJSON) {
		text += ". store.base_url may not be the service (it ends with the version, such as /v1)"
	}
	return text
}

func (e *RequestError) Unwrap() error { return e.Err }

// ForRate reports whether the service refused the request for the rate of requests, or because it is
// overloaded. That passes.
func (e *RequestError) ForRate() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// RefusedForRate reports whether err is a request that was refused for the rate as often as it was tried.
func RefusedForRate(err error) bool {
	failed, ok := errors.AsType[*RequestError](err)
	return ok && failed.ForRate()
}

// Refusal returns the refusal of a request that err stands for: if the request is repeated unchanged, it will
// be refused again. It returns nil if err is another error. A BlockedError may have a refusal as its cause,
// but that one refused another request: the one for a key.
func Refusal(err error) *RequestError {
	failed, ok := errors.AsType[*RequestError](err)
	if ok && !errors.As(err, new(*poller.BlockedError)) && failed.Err == nil && !failed.ForRate() &&
		failed.Status < http.StatusInternalServerError {
		return failed
	}
	return nil
}

// errorCode takes the service's code out of an error body. It takes only a text that looks like a code: no
// other part of a body may get into a log.
func errorCode(body []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || len(e.Error) > 64 ||
		strings.Trim(e.Error, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return ""
	}
	return e.Error
}

// maxRedirects limits the redirects that one request follows.
const maxRedirects = 3

// stayHere follows a redirect within the service's own address: frameworks send requests on to the path with
// a slash at its end, or without. It follows none elsewhere, because the key would go with the request.
func stayHere(req *http.Request, via []*http.Request) error {
	to, own := req.URL, via[0].URL
	if to.Scheme == own.Scheme && to.Host == own.Host && len(via) <= maxRedirects {
		return nil
	}
	return &httpclient.RedirectError{To: to.Scheme + "://" + to.Host}
}
