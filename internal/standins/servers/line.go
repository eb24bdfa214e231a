package servers

import (
	"net"
	"sync"
	"sync/atomic"
)

// Line is a TCP way to a server, with an address of its own. Once it is cut, the connections that it has stay
// open and nothing passes over them any more, as when a router on the way has forgotten them. New ones work.
type Line struct {
	listener net.Listener
	to       string
	ends     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	dead  *atomic.Bool // of the connections made since the last cut
	made  int
}

// LineForTest opens a line to an address for the length of a test.
func LineForTest(t TB, to string) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	l := &Line{listener: listener, to: to, dead: new(atomic.Bool)}
	l.ends.Go(l.serve)
	t.Cleanup(func() {
		listener.Close()
		l.mu.Lock()
		for _, c := range l.conns {
			c.Close()
		}
		l.mu.Unlock()
		l.ends.Wait()
	})
	return l
}

// Addr is the address of the line's near end, as host:port.
func (l *Line) Addr() string { return l.listener.Addr().String() }

// Cut lets nothing pass any more over the connections that there are.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead.Store(true)
	l.dead = new(atomic.Bool)
}

// Connections is how many were made so far.
func (l *Line) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made
}

func (l *Line) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			near.Close()
			continue
		}
		l.mu.Lock()
		l.made++
		l.conns = append(l.conns, near, far)
		dead := l.dead
		l.mu.Unlock()
		l.ends.Go(func() { carry(far, near, dead) })
		l.ends.Go(func() { carry(near, far, dead) })
	}
}

// carry copies until from ends. Once dead is set it discards everything that arrives, the end included.
func carry(to, from net.Conn, dead *atomic.Bool) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if dead.Load() {
			n = 0
		}
		_, _ = to.Write(b[:n])
		if err == nil {
			continue
		}
		if !dead.Load() {
			to.Close()
		}
		return
	}
}
