package client

import (
	"bytes"
	"fmt"
	"io"
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

// tooLongError means that an answer has more bytes than maxBody. announced is the length that it named. Zero
// means that it named none, and may have no end.
type tooLongError struct{ announced int64 }

func (e *tooLongError) Error() string {
	size := "or has no end"
	if e.announced > 0 {
		size = fmt.Sprintf("%d bytes", e.announced)
	}
	return fmt.Sprintf("the answer is longer than %d MiB (%s), and a page of 1000 rows takes some 400 KiB: "+
		"it is cut off and nothing of it is used. Either a row holds far too much, or the service does not "+
		"end its answer: ask its owner", maxBody>>20, size)
}

// body receives one answer after another. Bodies of more than ordinaryBody take turns: five resources that
// read large pages at once wait for each other instead of adding up.
type body struct {
	bytes.Buffer
	large chan struct{} // a place for each large body of the process
	holds bool          // one of these places
}

// read reads r whole. announced is its length, or -1 if that is unknown. A compressed body counts with its
// length after decompression. read calls pause before it waits, and calls the function that pause returned
// after it.
//
// A connection that ends before the announced length is an error here (io.ErrUnexpectedEOF).
func (b *body) read(r io.Reader, announced int64, done <-chan struct{}, pause func() (again func())) error {
	if announced > maxBody {
		return &tooLongError{announced}
	}
	n, err := b.ReadFrom(io.LimitReader(r, ordinaryBody+1))
	if err != nil || n <= ordinaryBody {
		return err
	}
	again := pause()
	select { // meanwhile the service waits with the rest
	case b.large <- struct{}{}:
		b.holds = true
	case <-done:
		return errStopped
	}
	again()
	// All its room at once: it would double it each time.
	b.Buffer = *bytes.NewBuffer(append(make([]byte, 0, maxBody+1+bytes.MinRead), b.Bytes()...))
	more, err := b.ReadFrom(io.LimitReader(r, maxBody-n+1))
	if err == nil && n+more > maxBody {
		return &tooLongError{}
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
