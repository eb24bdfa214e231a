package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
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
	if slow := cmp.Or(c.slow, c.Settings.Store.RequestTimeout/2); c.Requests.took > slow {
		f.add(Warning, "slow", "set store.request_timeout to more", "%s took %s, and store.request_timeout is %s",
			c.Requests.slowest, terminal.Duration(c.Requests.took), terminal.Duration(c.Settings.Store.RequestTimeout))
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
		f.unknown(c, r, t.Unknown)
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
	c.readAll(ctx, f, names) // at last, for it may use the time up
}

// unknown reports fields of the source that the schema of r does not know.
func (f *findings) unknown(c Config, r *schemas.Resource, fields []string) {
	names := "`storestream check --names` names them"
	if c.Names {
		names = strings.Join(fields, ", ")
	}
	if len(fields) > 0 {
		f.add(Note, r.Name, fmt.Sprintf("to publish one, add it to %s.avsc in schemas.dir: docs/lifecycle.md, %q",
			r.RecordName, "A field is added"), "%s that the schema does not know, not published: %s",
			terminal.Plural(len(fields), "field"), names)
	}
}

// readAll reads the resources side by side.
func (c Config) readAll(ctx context.Context, f *findings, names []string) {
	for _, mark := range c.marks() {
		c.Sources.Dialect().Load(mark.Dialect)
	}
	counts, readings := metrics.New(prometheus.NewRegistry()), make([]reading, len(names))
	var reads sync.WaitGroup
	for i, name := range names {
		reads.Go(func() { readings[i].read(ctx, c, c.Schemas.Get(name), counts.Resource(name)) })
	}
	reads.Wait()
	for i, name := range names {
		readings[i].report(ctx, c, f, name)
		f.unknown(c, c.Schemas.Get(name), counts.Resource(name).Fields())
	}
}

// enoughRows is how many rows one question reads at most: a dozen pages of the full size. Many services
// refuse the pages after 10,000 rows. A row that is read again does not count: a doubt takes several passes.
const enoughRows = 12_000

// reading holds the answers to the questions about one resource.
type reading struct {
	doing    atomic.Value    // the question under way, in words. A source may set it from a goroutine
	rows     int             // good ones. A row that is read again counts again
	first    *schemas.Record // the first of them
	rejects  map[string]bool // the rows that cannot be published
	rejected string          // the first of them, in words
	empty    bool            // by its own word, the source has no row at all
	delayed  string          // why settled stays before rows that were read, or stepped over
	err      error           // of the first question that failed. No question follows it
	stops    bool            // that question was one of a pass, so `run` ends there too
}

// read asks the questions that the next owner of r asks: those of a pass from settled on, of a pass of today
// if the first one does not get there, of a sweep, and of a look at one row. No row has the id of that look,
// as if a sweep looked for a row that was deleted. So the days around are asked for too.
func (rd *reading) read(ctx context.Context, c Config, r *schemas.Resource, m *metrics.Resource) {
	rd.rejects = map[string]bool{}
	source := c.Sources.New(r, m, zap.NewNop(), connect.Audience{MaxRows: 1,
		Days:  func(days []health.Days) { rd.delayed = cmp.Or(rd.delayed, days[0].Why) },
		Doing: func(what string) { rd.doing.Store(cmp.Or(what, rd.doing.Load().(string))) }})
	known := poller.Request{Kind: poller.Full, From: c.Settings.Resources[r.Name].Start, Complete: true,
		Started: schemas.InstantOf(time.Now())}
	mark, ok := c.marks()[r.Name]
	known.Identity, known.Fields = mark.Identity, mark.Fields
	pass, today, look := known, known, known
	if pass.Kind = poller.Pass; ok {
		pass.From, pass.Cursor, pass.Floor = max(known.From, mark.Settled), mark.Cursor, mark.Floor
		pass.Load = mark.Load
	}
	if ended := rd.ask(ctx, source, "a pass", pass); !ended {
		today.Kind, today.From = poller.Pass, max(pass.From, known.Started.Add(-24*time.Hour))
		rd.ask(ctx, source, "a pass of today", today)
	}
	rd.ask(ctx, source, "a sweep", known)
	if look.Kind = poller.Lookup; rd.first != nil {
		at := poller.Suspect{CreatedAt: poller.CreatedAtIn(r)(rd.first.Value), UpdatedAt: rd.first.UpdatedAt}
		look.Suspects = []poller.Suspect{at}
	}
	rd.ask(ctx, source, "a look at one row", look)
}

// ask asks one question, and returns whether it was answered to its end.
func (rd *reading) ask(ctx context.Context, s poller.Source, what string, r poller.Request) (ended bool) {
	if rd.err != nil {
		return false
	}
	rd.doing.Store(what)
	met := map[int64]bool{}
	for b, err := range s.Read(ctx, r) {
		if !errors.As(err, new(*poller.LostError)) { // an owner reads those rows again
			rd.err, rd.stops = err, r.Kind == poller.Pass
		}
		if rd.first == nil && len(b.Rows) > 0 {
			rd.first = &b.Rows[0]
		}
		rd.rows += len(b.Rows)
		for _, row := range b.Rejects {
			why := fmt.Sprintf("row %d breaks the contract in %q: %s", row.ID, row.Field, row.Err)
			rd.rejected, rd.rejects[why+string(row.Row)] = cmp.Or(rd.rejected, why), true
		}
		if ended = b.Done != nil; ended {
			rd.delayed, rd.empty = cmp.Or(rd.delayed, b.Done.Delayed), b.Done.Empty
		}
		for i := range b.Rows {
			met[b.Rows[i].ID] = true
		}
		if err != nil || len(met)+len(rd.rejects) >= enoughRows {
			return false
		}
	}
	return ended
}

// report reports the answers.
func (rd *reading) report(ctx context.Context, c Config, f *findings, name string) {
	before, level := len(f.all), Warning // level is that of rows that are left out: others are published
	late := rd.err != nil && errors.Is(rd.err, ctx.Err())
	if rd.rows == 0 && !rd.empty || late && rd.delayed != "" { // late: the time went into requests that fail
		level = Failure
	}
	if len(rd.rejects) > 0 {
		f.add(level, name, "look at such rows at their source: they will be dead letters",
			"%s cannot be published; the first: %s", terminal.Plural(len(rd.rejects), "row"), rd.rejected)
	}
	if rd.delayed != "" {
		f.add(level, name, "", "settling is delayed: %s", rd.delayed)
	}
	switch {
	case client.RefusedForRate(rd.err):
		f.add(Warning, name, "perhaps a running instance or another program uses up the key's rate. If it goes "+
			"on, lower store.max_requests_per_second", "%s", rd.err)
	case late:
		f.add(level, name, "", "not answered within %s: %s (%s read before)", terminal.Duration(c.within()),
			rd.doing.Load(), terminal.Plural(rd.rows, "row"))
	case rd.err != nil && rd.delayed != "" && !rd.stops: // only a pass steps over a failure
		f.add(level, name, "", "%s", rd.err)
	case rd.err != nil:
		f.fail(name, rd.err)
	case len(f.all) > before:
	case rd.rows == 0:
		f.add(Note, name, "", "it has no rows")
	default:
		f.ok(name, "the first rows of a pass and of a sweep can be read and published")
	}
}

// Requests measures the requests to the service. Watch, an option of connect.OpenSources, makes it do so.
type Requests struct {
	*http.Client
	mu      sync.Mutex
	slowest string
	took    time.Duration // until its answer began, or it failed
}

// Watch makes c send its requests through q. A person waits, so a request that fails is sent only once more.
// It may take as long as one of `run`.
func (q *Requests) Watch(c *client.Config) {
	q.Client, c.HTTP, c.Attempts = c.HTTP, &http.Client{Transport: q}, 2
}

// RoundTrip implements http.RoundTripper.
func (q *Requests) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := q.Transport.RoundTrip(r)
	q.mu.Lock()
	defer q.mu.Unlock()
	if took := time.Since(began); took > q.took {
		q.slowest, q.took = "/"+path.Base(r.URL.Path)+"?"+r.URL.RawQuery, took
	}
	return answer, err
}
