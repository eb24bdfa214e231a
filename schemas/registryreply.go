package schemas

import (
	"errors"
	"io"
	"mime"
	"net/http"
)

var (
	errNotJSON   = errors.New("the answer is a page for people, not JSON")
	errLongReply = errors.New("the answer has no end")
)

// boundedReplies refuses what no registry answers before the client reads it all: pages for people, and bodies without end.
type boundedReplies struct{ http.RoundTripper }

func (t boundedReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	// A proxy's page that says 502 is a registry that is down; with any other status, this is not the registry's address.
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if (kind == "text/html" || kind == "application/xhtml+xml") && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests &&
		resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		_ = resp.Body.Close()
		return nil, errNotJSON
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxRegistryReply}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongReply
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
