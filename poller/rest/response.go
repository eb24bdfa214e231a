package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	// maxBody bounds one answer. A page of 1000 rows takes about 400 KiB.
	maxBody = 64 << 20
	// maxRedirects bounds how often one request is sent on, within the service's own host.
	maxRedirects = 3
)

// statusError is an answer that says no, and will say so again if the request is repeated unchanged.
type statusError struct {
	status int
	code   string // the service's machine-readable error code, "" where the body has none
	path   string
}

func (e *statusError) Error() string {
	switch {
	case e.code != "":
		return fmt.Sprintf("%s answered %d %s", e.path, e.status, e.code)
	case e.status == http.StatusNotFound:
		return fmt.Sprintf("%s answered 404: store.base_url may not be the service (it ends with the version, such as /v1)", e.path)
	}
	return fmt.Sprintf("%s answered %d %s", e.path, e.status, http.StatusText(e.status))
}

// errTooBig: more than maxBody came.
var errTooBig = fmt.Errorf("the body is larger than %d MiB", maxBody>>20)

// readBody reads r whole into buf. The connection's end before the announced length is an error here (io.ErrUnexpectedEOF).
func readBody(buf *bytes.Buffer, r io.Reader) error {
	buf.Reset()
	n, err := buf.ReadFrom(io.LimitReader(r, maxBody+1))
	if err == nil && n > maxBody {
		return errTooBig
	}
	return err
}

// errorCode takes the service's code out of an error body. Only what looks like a code is taken: nothing else of a body may get into a log.
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

// redirectError is a redirect that is not followed.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("the service redirects to %s, which is not followed: the API key would go with the request. "+
		"If that is where the service now lives, set store.base_url to it", e.to)
}

// stayHere lets a request be redirected within the service's own host only, a few times, and never from TLS to plain text.
func stayHere(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	if req.URL.Host != from.Host || req.URL.Scheme != from.Scheme {
		upgrade := req.URL.Hostname() == from.Hostname() && from.Scheme == "http" && req.URL.Scheme == "https"
		if !upgrade {
			return &redirectError{to: req.URL.Scheme + "://" + req.URL.Host}
		}
	}
	if len(via) > maxRedirects {
		return &redirectError{to: fmt.Sprintf("itself more than %d times", maxRedirects)}
	}
	return nil
}

// reason is err without the address that net/http puts before it: the path is named by whoever wraps it.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
