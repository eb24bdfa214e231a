package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
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

var errTooLong = fmt.Errorf("the answer is longer than %d MiB, and a page of 1000 rows takes some 400 KiB: "+
	"nothing of it is used. Either a row holds far too much, or the service does not end its answer: ask its "+
	"owner", maxBody>>20)

// body receives one answer after another. Bodies of more than ordinaryBody take turns: five resources that
// read large pages at once wait for each other instead of adding up.
type body struct {
	bytes.Buffer
	large chan struct{} // a place for each large body of the process
	holds bool          // one of these places
}

// read reads an answer whole. A compressed one counts with its length after decompression. timer limits the
// read, and stands still while the body waits for its turn, which is not the service's fault.
//
// A connection that ends before the announced length is an error here (io.ErrUnexpectedEOF).
func (b *body) read(answer *http.Response, timer *time.Timer, timeout time.Duration) error {
	if answer.ContentLength > maxBody {
		return errTooLong
	}
	n, err := b.ReadFrom(io.LimitReader(answer.Body, ordinaryBody+1))
	if err != nil || n <= ordinaryBody {
		return err
	}
	timer.Stop()
	select { // meanwhile the service waits with the rest
	case b.large <- struct{}{}:
		b.holds = true
	case <-answer.Request.Context().Done():
		return errStopped
	}
	timer.Reset(timeout)
	// All its room at once: it would double it each time.
	b.Buffer = *bytes.NewBuffer(append(make([]byte, 0, maxBody+1+bytes.MinRead), b.Bytes()...))
	more, err := b.ReadFrom(io.LimitReader(answer.Body, maxBody-n+1))
	if err == nil && n+more > maxBody {
		return errTooLong
	}
	return err
}

// readNote reads the beginning of r.
func (b *body) readNote(r io.Reader) error {
	_, err := b.ReadFrom(io.LimitReader(r, maxNote))
	return err
}

// release gives back the memory of a large body. The text is gone.
func (b *body) release() {
	b.Reset()
	if b.holds {
		b.holds, b.Buffer = false, bytes.Buffer{}
		<-b.large
	}
}
