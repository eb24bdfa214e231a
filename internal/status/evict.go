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
// an old one to end: it closes the oldest instead. Otherwise a client that holds as many as it can would keep
// the orchestrator from /healthz. A page whose stream was closed connects again by itself, and so does
// Prometheus.
func evictOldest(most int) func(net.Conn, http.ConnState) {
	var mu sync.Mutex
	var open []net.Conn // the oldest first
	return func(conn net.Conn, state http.ConnState) {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn() // whose Close does not wait to tell the client
		}
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			if open = append(open, conn); len(open) > most {
				_ = open[0].Close() // its reader connects again and loses no data
				open = open[1:]
			}
		case http.StateClosed:
			open = slices.DeleteFunc(open, func(o net.Conn) bool { return o == conn })
		}
	}
}
