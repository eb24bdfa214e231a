package storefake

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

// Config is a whole stand-in service.
type Config struct {
	Listen string // address for HTTP; empty: 127.0.0.1:0
	Base   string // path of the base address; empty: /v1
	Seed   uint64
	Size   Size
	// Start is the instant at which the clock starts (zero: now), Offset comes on top of it, Speed is its pace (0: 1), and WholeSeconds
	// makes it stamp whole seconds.
	Start        time.Time
	Offset       time.Duration
	Speed        float64
	WholeSeconds bool
	Readings     Readings
	Faults       Faults
	Database     Database // empty DSN: in memory only
}

// Check names everything in c that cannot be.
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

// Fake is a running service: its rows, and what answers for them.
type Fake struct {
	*Store
	*Server
	http     *http.Server
	listener net.Listener
	done     chan struct{} // the HTTP server has returned
}

// Start generates history, sets PostgreSQL up where there is one, and answers requests when it returns. Close ends it.
func Start(ctx context.Context, c Config) (*Fake, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	store := NewStore(NewClock(c.Start, c.Speed, c.WholeSeconds), c.Seed)
	store.clock.Advance(c.Offset)
	store.read = c.Readings
	if err := store.connect(ctx, c.Database); err != nil {
		return nil, err
	}
	f := &Fake{Store: store, Server: NewServer(store, orElse(c.Base, "/v1")), done: make(chan struct{})}
	f.faults = c.Faults
	if err := f.fill(ctx, c); err != nil {
		store.Close()
		return nil, err
	}
	f.http = &http.Server{Handler: f.Server, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(quiet{}, "", 0)}
	go func() {
		defer close(f.done)
		_ = f.http.Serve(f.listener) // http.ErrServerClosed, from Close
	}()
	return f, nil
}

func (f *Fake) fill(ctx context.Context, c Config) (err error) {
	if f.listener, err = net.Listen("tcp", orElse(c.Listen, "127.0.0.1:0")); err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	if err = f.Generate(c.Size); err == nil {
		err = f.load(ctx)
	}
	if err != nil {
		_ = f.listener.Close() // nothing has been accepted yet
	}
	return err
}

// BaseURL is the service's base address, with its version segment.
func (f *Fake) BaseURL() string { return "http://" + f.listener.Addr().String() + f.base }

// Close stops traffic, drops every connection, and returns when all has ended. The tables in PostgreSQL stay.
// Transactions that a test began must have ended: it would wait for them.
func (f *Fake) Close() {
	_ = f.http.Close() // its connections are dropped either way
	<-f.done
	f.Store.Close()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// quiet is where net/http's complaints about aborted connections go: they are the faults that were asked for.
type quiet struct{}

func (quiet) Write(p []byte) (int, error) { return len(p), nil }
