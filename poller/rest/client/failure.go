package client

import (
	"errors"
	"net"
	"net/http"

	"github.com/storestream/storestream/internal/httpclient"
)

// Failure returns the failure of a request to path that err stands for, if it may depend on what was asked
// for: the same request may fail again while others are answered. Otherwise it returns nil. Then err is about
// the rate, the key, the address or the connection, or the caller has ended the request.
func Failure(err error, path string) *RequestError {
	failed, ok := errors.AsType[*RequestError](err)
	if !ok || failed.Path != path || failed.Rate || failed.Status == http.StatusUnauthorized ||
		errors.As(err, new(*httpclient.RedirectError)) {
		return nil
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op == "dial" {
		return nil
	}
	return failed
}
