package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// skewLimit is how far two clocks may differ before it is worth a word. Date headers are good to a second,
// and overlaps are minutes.
const skewLimit = 5 * time.Second

// tryService reads each resource that goes over REST.
func tryService(ctx context.Context, c Config, f *findings) {
	names := c.over(config.REST)
	if len(names) == 0 {
		return
	}
	c.readAll(ctx, f, names)
	f.expiry("", c.Settings.TLS("store").Shown())
	state := c.Sources.Service()
	if skew := state.ClockSkew; state.HasClock && skew.Abs() > skewLimit {
		f.add(Warning, "clock", "find out which clock is wrong (NTP): a day is closed when both say so",
			"the service's clock and this machine's differ by %s", terminal.Duration(skew.Abs()))
	}
	for _, known := range c.Sources.Dialect().Known() {
		level := OK
		if known.Value != "" && known.Value != known.Plain {
			level = Note
		}
		f.add(level, known.Name, "", "%s", known)
	}
}

// tryDatabase reads each resource that goes over PostgreSQL, and looks at its table.
func tryDatabase(ctx context.Context, c Config, f *findings) {
	names := c.over(config.Postgres)
	if len(names) == 0 {
		return
	}
	server, certificates, err := postgres.CheckServer(ctx, c.Sources.Database())
	if err != nil {
		f.fail("", err)
		return
	}
	f.ok("", "%s", server)
	f.expiry("", certificates)
	c.readAll(ctx, f, names)
	for _, name := range names {
		r := c.Schemas.Get(name)
		t, err := postgres.CheckTable(ctx, c.Sources.Database(), r)
		if err != nil {
			f.fail(name, err)
			continue
		}
		if t.CreateIndex != "" {
			f.add(Warning, name, "give this to the owner of the database: "+t.CreateIndex,
				"%s has no index on (updated_at, id): each poll reads the whole table", t.Name)
		}
		if len(t.Missing) > 0 {
			f.add(Note, name, "", "%s has no column for %s: published as null", t.Name, strings.Join(t.Missing, ", "))
		}
		f.unknown(r, t.Unknown)
		if t.NoFloor != "" {
			f.add(Note, name, "", "each poll reads all rows of the overlap, not only what has changed: %s", t.NoFloor)
		}
		if t.Hidden {
			f.add(Warning, name, "ask the owner for a policy that shows all rows, or for BYPASSRLS",
				"%s has row security: rows that its policies hide from this role are missing in the topic", t.Name)
		}
		if t.Writable {
			f.add(Warning, name, "use a role that may only SELECT, such as student_ro",
				"this role may change rows of %s, and storestream only reads", t.Name)
		}
	}
}

// unknown reports fields of the source that the schema of r does not know.
func (f *findings) unknown(r *schemas.Resource, fields []string) {
	if len(fields) > 0 {
		f.add(Note, r.Name, fmt.Sprintf("to publish one, add it to %s.avsc in schemas.dir: docs/operations.md, %q",
			r.RecordName, "A field is added"), "fields that the schema does not know are not published: %s",
			strings.Join(fields, ", "))
	}
}

// readAll reads the resources side by side.
func (c Config) readAll(ctx context.Context, f *findings, names []string) {
	for _, mark := range c.marks() {
		c.Sources.Dialect().Load(mark.Dialect)
	}
	counts := metrics.New(prometheus.NewRegistry())
	first, errs := make([]poller.Batch, len(names)), make([]error, len(names))
	var reads sync.WaitGroup
	for i, name := range names {
		reads.Go(func() { first[i], errs[i] = c.read(ctx, counts, name) })
	}
	reads.Wait()
	for i, name := range names {
		switch b := first[i]; {
		case client.RefusedForRate(errs[i]):
			f.add(Warning, name, "somebody uses the key at the limit of its rate: a running instance that is "+
				"catching up, or another program; lower store.max_requests_per_second if it goes on", "%s", errs[i])
		case errs[i] != nil:
			f.fail(name, errs[i])
		case len(b.Rejects) > 0:
			f.add(Warning, name, "look at that row at its source: it will be a dead letter",
				"row %d breaks the contract in %q: %s", b.Rejects[0].ID, b.Rejects[0].Field, b.Rejects[0].Err)
		case len(b.Rows) == 0:
			f.add(Note, name, "", "it has no rows")
		default:
			f.ok(name, "the first rows of a pass and of a sweep can be read and published")
		}
		f.unknown(c.Schemas.Get(name), counts.Resource(name).Fields())
	}
}

// read reads the first rows of a pass and of a sweep, as the next owner would. It returns those of the sweep.
func (c Config) read(ctx context.Context, counts *metrics.Set, name string) (first poller.Batch, err error) {
	var doing atomic.Value // a source may tell from a goroutine
	doing.Store("")
	source := c.Sources.New(c.Schemas.Get(name), counts.Resource(name), zap.NewNop(),
		connect.Audience{MaxRows: 1, Doing: func(what string) {
			if what != "" {
				doing.Store(", " + what)
			}
		}})
	start, now := c.Settings.Resources[name].Start, schemas.InstantOf(time.Now())
	pass := poller.Request{Kind: poller.Pass, From: start, Complete: true, Started: now}
	sweep := poller.Request{Kind: poller.Full, From: start, Started: now}
	if mark, ok := c.marks()[name]; ok {
		pass.From, pass.Cursor, pass.Floor = max(start, mark.Settled), mark.Cursor, mark.Floor
		pass.Identity, pass.Fields = mark.Identity, mark.Fields
		sweep.Identity, sweep.Fields = mark.Identity, mark.Fields
	}
	for _, request := range []poller.Request{pass, sweep} {
		for b, err := range source.Read(ctx, request) {
			switch {
			case errors.As(err, new(*poller.LostError)): // an owner reads again what it says
			case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
				return first, fmt.Errorf("%s: no rows yet after some time%s: %w", name, doing.Load(), err)
			case err != nil:
				return first, err
			}
			if first = b; len(b.Rows)+len(b.Rejects) > 0 {
				break
			}
		}
	}
	return first, nil
}
