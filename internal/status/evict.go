package status

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConnections is how many connections the server keeps at a time. An event stream costs some 20 KiB and
// some kilobytes a second, any other connection less.
const maxConnections = 128

// evictOldest returns a ConnState that bounds the connections of a server and never makes a new one wait for
// an old one to end. Otherwise a client that holds as many as it can would keep the orchestrator from
// /healthz. If there is no room, it closes the oldest connection of the client that has the most. So clients
// with few connections keep them, and a client that has all of them still gets an answer on a new one. A page
// whose stream was closed connects again by itself, and so does Prometheus.
func evictOldest(most int) func(net.Conn, http.ConnState) {
	var mu sync.Mutex
	var open []net.Conn // the oldest first
	client := func(conn net.Conn) string {
		address := conn.RemoteAddr().String()
		if host, _, err := net.SplitHostPort(address); err == nil {
			return host
		}
		return address
	}
	return func(conn net.Conn, state http.ConnState) {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn() // whose Close does not wait to tell the client
		}
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			if open = append(open, conn); len(open) <= most {
				return
			}
			count := map[string]int{}
			for _, o := range open {
				count[client(o)]++
			}
			conn = slices.MaxFunc(open, func(a, b net.Conn) int { return count[client(a)] - count[client(b)] })
			_ = conn.Close() // its reader connects again and loses no data
			fallthrough
		case http.StateClosed:
			open = slices.DeleteFunc(open, func(o net.Conn) bool { return o == conn })
		}
	}
}
