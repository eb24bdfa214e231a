package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// obeyed is what a terminal would obey, and then word: clear the screen, set its title, C1's CSI, a
// bidirectional override, and a carriage return that begins the line anew.
func obeyed(word string) string { return "\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\r" + word }

// harmless fails the test where a terminal would obey something in text, or word is not in it.
func harmless(t *testing.T, word, what, text string) {
	t.Helper()
	if !strings.Contains(text, word) {
		t.Errorf("%s: the hostile text is not in it at all:\n%s", what, text)
	}
	if terminal.Escape(text) != text {
		t.Errorf("%s: control characters of others: %q", what, text)
	}
}

// Each is alone, so that the text that is found is its own.
func TestTextOfAHostilePeerBringsNoControlCharacters(t *testing.T) {
	refusing := func(word string) string {
		return repeats(t, func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusBadRequest, map[string]any{"error_code": 42201, "message": obeyed(word),
				"error": obeyed(word)})
		})
	}
	for name, peer := range map[string]struct {
		setting  func(word string) string
		says     string
		commands []string
	}{
		"service": {func(word string) string { return "store.base_url=" + refusing(word) + "/v1" },
			"answered 400", // of what the service says only a code is quoted, and this is none
			[]string{"check", "row users 1", "row users 1 -o json"}},
		"registry": {func(word string) string { return "registry.url=" + refusing(word) },
			"planted-registry", []string{"check", "schema register"}},
		"database": {func(word string) string {
			dsn := refusingDatabase(t, func(string) string { return obeyed(word) })
			return "postgres.dsn=" + dsn("password0123")
		}, "planted-database", []string{"check", "row orders 1", "row orders 1 -o json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, word := newScene(t), "planted-"+name
			s.Serve(nil)
			s.Settings = append(s.Settings, "store.api_key=k0123456789", peer.setting(word))
			everywhere(t, s, peer.says, func(what, text string) {
				harmless(t, peer.says, what, text)
				if peer.says != word && strings.Contains(text, word) {
					t.Errorf("%s quotes what is no code:\n%s", what, text)
				}
			}, peer.commands...)
		})
	}
}

func TestRowsThatHoldControlCharactersBringNoneToATerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "\u009b31m\u202eplanted")}, nil, nil)
	for _, args := range [][]string{{"tail", "orders", "-n", "1"},
		{"tail", "orders", "-n", "1", "-o", "json"},
		{"row", "orders", "1"}, {"row", "orders", "1", "-o", "json"}} {
		c := s.do(args...)
		harmless(t, "planted", strings.Join(args, " "), c.stdout.String()+c.stderr.String())
	}
}

// What a server says before it has let anybody in is bounded, also while check looks at what protects the
// connection. Unbounded, a notice of 1 GB took 4 GB of memory.
func TestADatabaseThatSaysTooMuchBeforeTheLoginIsLeft(t *testing.T) {
	const taken = 32 << 20 // by the sockets of a connection, at most
	for name, says := range map[string][]byte{
		"one notice of 1 GB":          append([]byte{'N', 0x40, 0, 0, 4}, make([]byte, 1<<20)...),
		"notices of 1 kB without end": append([]byte{'N', 0, 0, 4, 0, 'M'}, make([]byte, 1<<10-5)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			var most, connections atomic.Int64
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						connections.Add(1)
						_, _ = pgproto3.NewBackend(c, c).ReceiveStartupMessage()
						for sent := int64(0); sent < 1<<30; sent += int64(len(says)) {
							most.Store(max(most.Load(), sent))
							if _, err := c.Write(says); err != nil {
								return
							}
						}
					}()
				}
			}()
			s := newScene(t)
			s.Serve(nil)
			s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
			dsn := fmt.Sprintf("postgres://ru:password0123@%s/postgres?sslmode=disable", l.Addr())
			s.Settings = append(s.Settings, "postgres.dsn="+dsn)
			for _, args := range [][]string{{"check"}, {"row", "orders", "1"}, {"verify", "orders"}} {
				before := connections.Load()
				c := s.do(args...)
				said := c.stdout.String() + c.stderr.String()
				if !strings.Contains(said, "before the login is complete") || connections.Load() == before {
					t.Errorf("%s: %d connections, %s", args, connections.Load()-before, said)
				}
				if most.Load() > taken {
					t.Fatalf("%s took %d bytes", args, most.Load())
				}
			}
		})
	}
}
