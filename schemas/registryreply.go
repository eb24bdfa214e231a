package schemas

import (
	"errors"
	"io"
	"net/http"
)

var errLongReply = errors.New("the answer has no end")

// boundedReplies ends bodies that are longer than anything a registry answers: the client reads them whole.
type boundedReplies struct{ http.RoundTripper }

func (t boundedReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
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
