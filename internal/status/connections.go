package status

import (
	"net"
	"slices"
	"sync"
)

// maxConnections is how many connections the server keeps at a time. An event stream costs some 20 KiB and
// some kilobytes a second, any other connection less.
const maxConnections = 128

// connections is a listener that keeps a bounded number of connections and never makes a new one wait for an
// old one to end. Otherwise a client that holds as many as it can would keep the orchestrator from /healthz.
// If there is no room, it closes the oldest connection of the client that has the most. So clients with few
// connections keep them, and a client that has all of them still gets an answer on a new one. A page whose
// stream was closed connects again by itself, and so does Prometheus.
type connections struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*connection // the oldest first
}

type connection struct {
	net.Conn
	client string // its IP address
	all    *connections
}

// Accept is net.Listener's.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	client, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		client = conn.RemoteAddr().String()
	}
	fresh := &connection{Conn: conn, client: client, all: c}
	if old := c.add(fresh); old != nil {
		_ = old.Close() // its reader connects again and loses no data
	}
	return fresh, nil
}

// add returns the connection that has to go, or nil if there is room.
func (c *connections) add(fresh *connection) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, fresh)
	if len(c.open) <= c.most {
		return nil
	}
	count := map[string]int{}
	for _, o := range c.open {
		count[o.client]++
	}
	victim := c.open[0]
	for _, o := range c.open {
		if count[o.client] > count[victim.client] {
			victim = o
		}
	}
	return victim
}

// Close is net.Conn's.
func (c *connection) Close() error {
	c.all.remove(c)
	return c.Conn.Close()
}

func (c *connections) remove(gone *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, func(o *connection) bool { return o == gone })
}
