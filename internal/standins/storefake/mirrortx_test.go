package storefake_test

import (
	"bytes"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// breaker stands between a client and PostgreSQL and breaks the connection at the next commit that it is
// armed for.
type breaker struct {
	armed atomic.Int32 // one of the constants below
}

const (
	asleep     int32 = iota
	beforeSent       // the server never gets the commit
	afterDone        // the server commits, and the client does not hear of it
)

func (b *breaker) listen(t *testing.T, server string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			var mute atomic.Bool
			go b.pipe(client, upstream, func(p []byte) bool {
				if !bytes.Contains(p, []byte("commit")) {
					return true
				}
				if b.armed.CompareAndSwap(afterDone, asleep) {
					mute.Store(true)
				}
				return !b.armed.CompareAndSwap(beforeSent, asleep)
			})
			go b.pipe(upstream, client, func([]byte) bool { return !mute.Load() })
		}
	}()
	return listener.Addr().String()
}

// pipe copies until an end, or until pass refuses a piece; then it breaks both connections.
func (b *breaker) pipe(from, to net.Conn, pass func([]byte) bool) {
	defer from.Close()
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil || !pass(piece[:n]) {
			return
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}

// The connection breaks at the commit: memory must follow what PostgreSQL made of it.
func TestABrokenCommitIsTakenForWhatBecameOfIt(t *testing.T) {
	dsn, err := url.Parse(database(t))
	if err != nil {
		t.Fatal(err)
	}
	var b breaker
	dsn.Host = b.listen(t, dsn.Host)
	f := start(t, storefake.Config{Size: small, Database: storefake.Database{DSN: dsn.String()}})
	for name, c := range map[string]struct {
		armed     int32
		committed bool
	}{"the commit was done": {afterDone, true}, "the commit never came": {beforeSent, false}} {
		for kind, change := range map[string]func(*storefake.Tx) error{
			"insert": func(tx *storefake.Tx) error {
				_, err := tx.Insert(t.Context(), storefake.Orders, storefake.Row{})
				return err
			},
			"update": func(tx *storefake.Tx) error {
				return tx.Update(t.Context(), storefake.Orders, 1, func(storefake.Row) {})
			},
			"delete": func(tx *storefake.Tx) error {
				return tx.Delete(t.Context(), storefake.Orders,
					int64(10+c.armed))
			},
		} {
			b.armed.Store(c.armed)
			if err := f.Do(t.Context(), change); (err == nil) != c.committed {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
			if b.armed.Load() != asleep {
				t.Fatalf("%s, %s: no commit was seen", kind, name)
			}
			requireSame(t, f, reader(t, f))
		}
	}
}
