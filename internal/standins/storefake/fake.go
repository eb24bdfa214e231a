package storefake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

// Config is a whole stand-in service.
type Config struct {
	Listen string // address for HTTP, 127.0.0.1:0 if empty
	Base   string // path of the base address, /v1 if empty
	Seed   uint64
	Size   Size
	// Start is the instant at which the clock starts, now if zero. Offset is added to it. Speed is its pace,
	// 1 if 0. WholeSeconds makes it stamp whole seconds.
	Start        time.Time
	Offset       time.Duration
	Speed        float64
	WholeSeconds bool
	Readings     Readings
	Faults       Faults
	Database     Database // empty DSN: in memory only
}

// Check reports every impossible setting of c, all at once.
func (c *Config) Check() error {
	errs := []error{c.Size.Check(), c.Readings.Check(), c.Faults.Check(), c.Database.Check()}
	if c.Base != "" && !strings.HasPrefix(c.Base, "/") {
		errs = append(errs, fmt.Errorf("base %q: expected a path, such as /v1", c.Base))
	}
	if c.Speed < 0 {
		errs = append(errs, fmt.Errorf("clock speed %v: expected more than 0", c.Speed))
	}
	return errors.Join(errs...)
}

// Fake is a running service. Its parts are there to be used by tests: rows are read through Tables, changed
// through Store and Shop, requests are looked at through Server, and Behaviour says how it answers.
type Fake struct {
	*Tables
	*Store
	*Shop
	*Behaviour
	*Server
	http     *http.Server
	listener net.Listener
	done     chan struct{} // the HTTP server has returned
}

// Start generates history, sets PostgreSQL up if there is one, and answers requests when it returns. Close
// ends it.
func Start(ctx context.Context, c Config) (*Fake, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cmp.Or(c.Listen, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	clock := newClock(c.Start, c.Offset, c.Speed, c.WholeSeconds)
	store, err := newStore(ctx, &c, clock)
	if err != nil {
		_ = listener.Close() // nothing has been accepted yet
		return nil, err
	}
	behaviour := newBehaviour(c.Seed, c.Readings, c.Faults)
	server := newServer(store, behaviour, c.Seed, cmp.Or(c.Base, "/v1"))
	f := &Fake{
		Tables: store.tables, Store: store, Shop: newShop(store, behaviour, c.Seed), Behaviour: behaviour,
		Server: server,
		http: &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: log.New(io.Discard, "", 0)}, // of connections that faults broke off
		listener: listener, done: make(chan struct{}),
	}
	go func() {
		defer close(f.done)
		_ = f.http.Serve(f.listener) // http.ErrServerClosed, from Close
	}()
	return f, nil
}

// Clock is the clock that stamps the rows.
func (f *Fake) Clock() *Clock { return f.Server.clock }

// BaseURL is the service's base address, with its version segment.
func (f *Fake) BaseURL() string { return "http://" + f.listener.Addr().String() + f.base }

// Close stops traffic, drops every connection, and returns when all has ended. The tables in PostgreSQL stay.
// Transactions that a test began must have ended: it would wait for them.
func (f *Fake) Close() {
	_ = f.http.Close() // its connections are dropped either way
	<-f.done
	f.Quiesce()
	if f.mirror != nil {
		f.mirror.pool.Close()
	}
}
