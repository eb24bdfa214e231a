package postgres

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// maxParameters bounds what a server says of its settings on one connection, in bytes. Servers name some
// fifteen, and again what changes.
const maxParameters = 1 << 20

// maxLogin limits the bytes that a server may send before the login is complete: its requests for
// credentials, its settings and notices. Servers send some 500 bytes.
const maxLogin = 1 << 20

// boundServer ends a connection if its server sends too much before the login is complete, or keeps sending
// settings (ParameterStatus): pgx keeps all of them as long as the connection lives.
func boundServer(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&parameterBound{server: r, login: maxLogin}, w)
}

// parameterBound counts the bytes of a server's login and of its ParameterStatus as it passes its messages
// on.
type parameterBound struct {
	server io.Reader
	login  int64   // bytes that it may still send before the login is complete. Zero: it is
	head   [5]byte // of the message that comes: its type, and the length of all but that
	got    int     // bytes of head
	body   int64   // bytes of the message in hand that are still to come
	named  int64   // bytes of ParameterStatus so far
}

// Read is io.Reader's.
func (b *parameterBound) Read(p []byte) (int, error) {
	n, err := b.server.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if b.body > 0 {
			passed := min(b.body, int64(len(rest)))
			b.body, rest = b.body-passed, rest[passed:]
			continue
		}
		copied := copy(b.head[b.got:], rest)
		rest = rest[copied:]
		if b.got += copied; b.got < len(b.head) {
			break
		}
		b.got, b.body = 0, max(0, int64(binary.BigEndian.Uint32(b.head[1:]))-4)
		if err := b.logIn(); err != nil {
			return 0, err
		}
		if b.head[0] != 'S' {
			continue
		}
		if b.named += b.body; b.named > maxParameters {
			return 0, fmt.Errorf("the server names settings without end: more than %d bytes of them", maxParameters)
		}
	}
	return n, err
}

// logIn counts the message that begins, until one says that the login is complete (ReadyForQuery).
func (b *parameterBound) logIn() error {
	if b.head[0] == 'Z' {
		b.login = 0
	}
	if b.login == 0 {
		return nil
	}
	if b.login -= int64(len(b.head)) + b.body; b.login <= 0 {
		return fmt.Errorf("the server sends more than %d bytes before the login is complete: it is not PostgreSQL",
			maxLogin)
	}
	return nil
}
