package postgres

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// maxTalk limits the bytes that a server may send on one connection besides answers: before the login is
// complete, its requests for credentials, settings and notices; later, settings (ParameterStatus), which pgx
// keeps as long as the connection lives. Servers send some 500 bytes.
const maxTalk = 1 << 20

// boundServer ends a connection if its server sends more than maxTalk.
func boundServer(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&talkBound{server: r}, w)
}

// talkBound counts the bytes of a server's messages as it passes them on.
type talkBound struct {
	server   io.Reader
	loggedIn bool
	talk     int64   // bytes that count
	head     [5]byte // of the next message: its type, and its length without the type
	got      int     // bytes of head that have come
	body     int64   // bytes of the message in hand that have not come
}

// Read is io.Reader's.
func (b *talkBound) Read(p []byte) (int, error) {
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
		const readyForQuery, parameterStatus = 'Z', 'S'
		b.loggedIn = b.loggedIn || b.head[0] == readyForQuery
		if !b.loggedIn || b.head[0] == parameterStatus {
			b.talk += int64(len(b.head)) + b.body
		}
		if b.talk > maxTalk {
			return 0, fmt.Errorf("the server sends more than %d bytes before the login is complete, or as settings: "+
				"it is not PostgreSQL", maxTalk)
		}
	}
	return n, err
}
