package postgres_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller/postgres"
)

// greedy plays a server, or somebody in between, that has no TLS and asks for the password in clear. It
// returns its address, and what each connection sent it after it had said so.
func greedy(t *testing.T) (address string, sent <-chan []byte) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(servers.ElsewhereForTest(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan []byte, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(all)
				return
			}
			all <- ask(conn)
			conn.Close()
		}
	}()
	return l.Addr().String(), all
}

// ask refuses TLS, then asks whoever goes on without it for the password, and returns everything that came.
func ask(conn net.Conn) []byte {
	var seen bytes.Buffer
	backend := pgproto3.NewBackend(io.TeeReader(conn, &seen), conn)
	startup, err := backend.ReceiveStartupMessage()
	if _, isTLS := startup.(*pgproto3.SSLRequest); err == nil && isTLS {
		if _, err = conn.Write([]byte{'N'}); err == nil {
			_, err = backend.ReceiveStartupMessage()
		}
	}
	if err != nil {
		return seen.Bytes()
	}
	question := binary.BigEndian.AppendUint32([]byte{'R'}, 8)
	_, _ = conn.Write(binary.BigEndian.AppendUint32(question, pgproto3.AuthTypeCleartextPassword))
	_, _ = backend.Receive() // tees what comes
	return seen.Bytes()
}

func TestAServerWithoutTLSThatAsksForThePasswordInClearNeverGetsIt(t *testing.T) {
	t.Parallel()
	address, sent := greedy(t)
	for _, test := range []struct {
		more string
		gets bool
	}{
		{"", false}, {"?sslmode=require", false}, {"?sslmode=verify-full", false},
		// These config refuses without an exception. They show that the server does ask; prefer is libpq's default.
		{"?sslmode=disable", true}, {"?sslmode=prefer", true},
	} {
		dsn := "postgres://student_ro:s3cretword@" + address + "/store" + test.more
		db, err := postgres.Open(rotation.Literal(dsn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = postgres.CheckServer(t.Context(), db)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", test.more, err)
		}
		db.Close()
		all := <-sent
		for len(sent) > 0 {
			all = append(all, <-sent...)
		}
		if bytes.Contains(all, []byte("s3cretword")) != test.gets {
			t.Errorf("with %q it was sent %q: the password is in it is expected to be %v", test.more, all, test.gets)
		}
	}
}
