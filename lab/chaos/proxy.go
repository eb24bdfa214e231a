package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// The directions of a toxic. upstream is from the client.
const (
	upstream   = "upstream"
	downstream = "downstream"
)

// toxic spoils a connection in one of toxiproxy's ways: reset_peer, timeout (bytes are lost, the connection
// stays), latency (amount in milliseconds), bandwidth (amount in KB/s).
type toxic struct {
	kind, stream string
	amount       int
}

// proxy stands before one of the parts. Its address stays the same for clients through every mishap.
type proxy struct {
	name, at, to string

	mu sync.Mutex
	p  *toxiproxy.Proxy
}

// newProxy starts a proxy on port.
func newProxy(name string, port int, to string) (*proxy, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // the library's toxics log each packet
	p := &proxy{name: name, at: address(port), to: to}
	return p, p.start()
}

func (p *proxy) start() error {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p.p = toxiproxy.NewProxy(server, p.name, p.at, p.to)
	if err := p.p.Start(); err != nil {
		return fmt.Errorf("proxy before %s: %w", p.name, err)
	}
	return nil
}

func (p *proxy) address() string { return p.at }

// cut refuses connections and drops those that there are.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.p.Stop()
}

// poison lets all connections, new ones too, suffer from t until repair.
func (p *proxy) poison(t toxic) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	attributes := map[string]int{"timeout": 0} // of timeout and reset_peer: at once, and until further notice
	switch t.kind {
	case "latency":
		attributes = map[string]int{"latency": t.amount, "jitter": t.amount / 2}
	case "bandwidth":
		attributes = map[string]int{"rate": t.amount}
	}
	text, err := json.Marshal(map[string]any{"name": t.kind, "type": t.kind, "stream": t.stream,
		"attributes": attributes})
	if err != nil {
		return err
	}
	if _, err := p.p.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
		return fmt.Errorf("%s before %s: %w", t.kind, p.name, err)
	}
	return nil
}

// repair drops all connections and starts a new proxy without toxics. To remove a toxic could hang: one that
// is about to pass on bytes, on a connection that has just ended, does not listen.
func (p *proxy) repair() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.p.Stop()
	return p.start()
}

func (p *proxy) close() { p.cut() }

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
