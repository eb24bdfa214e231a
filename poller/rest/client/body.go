package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	// ordinaryBody is room for a page: one of 1000 rows takes about 400 KiB.
	ordinaryBody = 1 << 20
	// maxBody bounds one answer: of 1000 rows, each may have 32 KiB.
	maxBody = 32 << 20
	// largeBodies is how many answers of more than ordinaryBody may be in memory at once, of all resources.
	largeBodies = 1
	// maxNote is how much is read of an answer that has no rows, such as an error.
	maxNote = 64 << 10
)

// errTooMuch means that the answer exceeds maxBody or maxRows.
var errTooMuch = fmt.Errorf("the answer is longer than %d MiB or has more than %d rows, and a page of 1000 "+
	"rows takes some 400 KiB: nothing of it is used. Either a row holds far too much, or the service does not "+
	"end its answer: ask its owner", maxBody>>20, maxRows)

// read reads the body of an answer whole. A compressed one counts with its length after decompression.
//
// Bodies of more than ordinaryBody take turns: five resources that read large pages at once wait for each
// other instead of adding up. The timeout stands still meanwhile, because that is not the service's fault.
//
// A connection that ends before the announced length is an error here (io.ErrUnexpectedEOF).
func (e *Endpoint) read(answer *http.Response) error {
	if answer.ContentLength > maxBody {
		return errTooMuch
	}
	n, err := e.body.ReadFrom(io.LimitReader(answer.Body, ordinaryBody+1))
	if err != nil || n <= ordinaryBody {
		return err
	}
	e.timer.Stop()
	select { // meanwhile the service waits with the rest
	case e.client.large <- struct{}{}:
		e.large = true
	case <-answer.Request.Context().Done():
		return context.Cause(answer.Request.Context())
	}
	e.timer.Reset(e.client.cfg.RequestTimeout)
	// All its room at once: it would double it each time.
	e.body = *bytes.NewBuffer(append(make([]byte, 0, maxBody+1+bytes.MinRead), e.body.Bytes()...))
	more, err := e.body.ReadFrom(io.LimitReader(answer.Body, maxBody-n+1))
	if err == nil && n+more > maxBody {
		return errTooMuch
	}
	return err
}

// legible returns why a body is not JSON by its character set. A service may name a wrong one, so a body that
// is UTF-8 all the same is read.
func legible(h http.Header, body []byte) error {
	_, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	set := params["charset"]
	if set != "" && !strings.EqualFold(strings.ReplaceAll(set, "-", ""), "utf8") && !utf8.Valid(body) {
		return fmt.Errorf("the answer has the character set %.20q, expected UTF-8", set)
	}
	return nil
}
