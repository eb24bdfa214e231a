package postgres_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// gate is a TCP proxy on the way to a server. The way can change, and connections can be left hanging: they
// stay open, and nothing comes through.
type gate struct {
	net.Listener
	// open is locked while the gate is closed: what is sent arrives when it opens again.
	open sync.RWMutex

	mu        sync.Mutex
	to        int
	answered  func() func([]byte) ([]byte, bool) // nil: what servers send goes on as it is
	near, far []net.Conn
}

func openGate(t *testing.T, port int) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l, to: port}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			g.join(client)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended; g.cut() })
	return g
}

func (g *gate) join(client net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	backend, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", g.to))
	if err != nil {
		client.Close()
		return
	}
	g.near, g.far = append(g.near, client), append(g.far, backend)
	same := func(b []byte) ([]byte, bool) { return b, true }
	edit := same
	if g.answered != nil {
		edit = g.answered()
	}
	go g.relay(backend, client, same)
	go g.relay(client, backend, edit)
}

func (g *gate) relay(to, from net.Conn, edit func([]byte) ([]byte, bool)) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err == nil {
			sent, goesOn := edit(buf[:n])
			g.open.RLock()
			_, err = to.Write(sent)
			g.open.RUnlock()
			if !goesOn {
				to.Close()
				from.Close()
			}
		}
		if err != nil {
			return // the other half stays open: a peer that is gone says nothing
		}
	}
}

// dsn is the way to a database through the gate.
func (g *gate) dsn(database string) string {
	direct, here := fmt.Sprintf(":%d/", server.Port), fmt.Sprintf(":%d/", g.Addr().(*net.TCPAddr).Port)
	return strings.Replace(server.DSN(role, password, database), direct, here, 1)
}

// watch makes look, once for each new connection, the function that gets what its server sends.
func (g *gate) watch(look func() func([]byte)) {
	g.edit(func() func([]byte) ([]byte, bool) {
		each := look()
		return func(b []byte) ([]byte, bool) { each(b); return b, true }
	})
}

// edit makes change, once for each new connection, the function that says what goes on of what its server
// sends, and whether the connection goes on after that.
func (g *gate) edit(change func() func([]byte) ([]byte, bool)) {
	g.mu.Lock()
	g.answered = change
	g.mu.Unlock()
}

// lead changes the way of new connections and ends those there are.
func (g *gate) lead(port int) {
	g.mu.Lock()
	g.to = port
	g.mu.Unlock()
	g.cut()
}

func (g *gate) cut() { g.hang(); g.end(&g.near) }

// hang ends only the far side of each connection: the near side never learns of it.
func (g *gate) hang() { g.end(&g.far) }

func (g *gate) end(conns *[]net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range *conns {
		c.Close()
	}
	*conns = nil
}
