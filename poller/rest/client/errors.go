package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/storestream/storestream/poller"
)

// StatusError is an answer with a status of refusal or failure. If the request is repeated unchanged, a 4xx
// will come again.
type StatusError struct {
	Status int
	// Code is the service's machine-readable error code, "" if the body has none.
	Code string
	Path string
}

func (e *StatusError) Error() string {
	switch {
	case e.Code != "":
		return fmt.Sprintf("%s answered %d %s", e.Path, e.Status, e.Code)
	case e.Status == http.StatusNotFound:
		return e.Path + " answered 404: store.base_url may not be the service " +
			"(it ends with the version, such as /v1)"
	}
	return fmt.Sprintf("%s answered %d %s", e.Path, e.Status, http.StatusText(e.Status))
}

// Refusal returns the 4xx that err stands for, or nil if it is another error. A BlockedError may have a 4xx
// as its cause, but that one refused another request: the one for a key.
func Refusal(err error) *StatusError {
	status, ok := errors.AsType[*StatusError](err)
	if !ok || errors.As(err, new(*poller.BlockedError)) || status.Status >= http.StatusInternalServerError {
		return nil
	}
	return status
}

// RateError says that the service went on refusing a request for the rate of requests, or because it is
// overloaded. That passes.
type RateError struct {
	Path   string
	Status int // 429 or 503
	Times  int // in a row
}

func (e *RateError) Error() string {
	times := ""
	if e.Times > 1 {
		times = fmt.Sprintf(" %d times in a row", e.Times)
	}
	return fmt.Sprintf("%s answered %d (too many requests, or overloaded)%s", e.Path, e.Status, times)
}

// errorCode takes the service's code out of an error body. It takes only a text that looks like a code: no
// other part of a body may get into a log.
func errorCode(body []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || len(e.Error) > 64 {
		return ""
	}
	if strings.Trim(e.Error, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return ""
	}
	return e.Error
}

// maxRedirects bounds how often one request is sent on, within the service's own host.
const maxRedirects = 3

// redirectError is a redirect that is not followed.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("the service redirects to %s, which is not followed: the API key would go with the "+
		"request. If that is where the service now lives, set store.base_url to it", e.to)
}

// stayHere follows a redirect only within the service's own host, a few times. It never follows one from TLS
// to plain text, not even back to the address of the first request.
func stayHere(req *http.Request, via []*http.Request) error {
	from, last := via[0].URL, via[len(via)-1].URL
	own := req.URL.Host == from.Host && req.URL.Scheme == from.Scheme
	upgrade := req.URL.Hostname() == from.Hostname() && from.Scheme == "http" && req.URL.Scheme == "https"
	if !own && !upgrade || last.Scheme == "https" && req.URL.Scheme != "https" {
		return &redirectError{to: req.URL.Scheme + "://" + req.URL.Host}
	}
	if len(via) > maxRedirects {
		return &redirectError{to: fmt.Sprintf("itself more than %d times", maxRedirects)}
	}
	return nil
}

// reason is err without the address that net/http puts before it: the caller names the path.
func reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
