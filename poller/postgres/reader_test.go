package postgres_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// reader is a source through the pooler, and what a topic would hold of it: the part of the poller that these
// tests need.
type reader struct {
	t       *testing.T
	source  *postgres.Source
	metrics *prometheus.Registry

	settled  schemas.Instant
	cursor   *watermark.Cursor
	floor    *watermark.Floor
	fields   []string
	identity *watermark.Identity
	rows     map[int64]schemas.Record
	rejects  map[int64]schemas.Reject
	done     poller.Done
	lost     int // times, the last one of which says:
	why      poller.LostError
	batches  []poller.Batch
	// before is called with each batch before it is taken; an error refuses it.
	before func(poller.Batch) error
}

const overlap = 2 * time.Second

// shortOverlap is for tests that wait for settled to move.
var shortOverlap = postgres.SourceConfig{Overlap: 100 * time.Millisecond}

func (s *shop) reader() *reader { s.t.Helper(); return s.readerOf(postgres.SourceConfig{}) }

func (s *shop) readerOf(c postgres.SourceConfig) *reader {
	s.t.Helper()
	return openReader(s.t, pooler.DSN(role, password, s.name), c)
}

func openReader(t *testing.T, dsn string, c postgres.SourceConfig) *reader {
	t.Helper()
	db, err := postgres.Open(postgres.Config{DSN: rotation.Literal(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	r := &reader{
		t: t, metrics: prometheus.NewRegistry(), settled: schemas.MinInstant,
		rows: map[int64]schemas.Record{}, rejects: map[int64]schemas.Reject{},
	}
	c.Resource, c.Start = orders, schemas.MinInstant
	c.Metrics = metrics.New(r.metrics).Resource("orders")
	if c.Overlap == 0 {
		c.Overlap = overlap
	}
	r.source = postgres.NewSource(db, c)
	return r
}

// poll is one pass; it fails the test if the pass fails, or if a batch breaks the promise that settled makes.
func (r *reader) poll() poller.Done {
	r.t.Helper()
	if err := r.read(poller.Request{}); err != nil {
		r.t.Fatalf("read: %v", err)
	}
	return r.done
}

// read reads, and as a takeover does when what was read before does not count.
func (r *reader) read(q poller.Request) error {
	err := r.readOnce(q)
	var lost *poller.LostError
	if errors.As(err, &lost) {
		r.lost++
		r.why = *lost
		r.settled, r.cursor, r.floor = min(r.settled, lost.From), nil, nil
		if lost.Sweep {
			r.identity = r.identity.Anew()
		}
		err = r.readOnce(q)
	}
	return err
}

func (r *reader) readOnce(q poller.Request) error {
	if q.Kind == poller.Pass {
		q.From, q.Cursor, q.Floor, q.Fields = r.settled, r.cursor, r.floor, r.fields
	}
	q.Identity = r.identity
	q.Started = schemas.InstantOf(time.Now())
	r.done, r.batches = poller.Done{}, nil
	return each(r.source.Read(r.t.Context(), q), func(b poller.Batch) error {
		if r.before != nil {
			if err := r.before(b); err != nil {
				return err
			}
		}
		return r.take(b, q)
	})
}

func (r *reader) take(b poller.Batch, q poller.Request) error {
	pass := q.Kind == poller.Pass
	for _, row := range b.Rows {
		old, ok := r.rows[row.ID]
		if met := ok && old.UpdatedAt == row.UpdatedAt; pass && !met && row.UpdatedAt < r.settled {
			r.t.Errorf("row %d at %s appeared after settled had reached %s", row.ID, row.UpdatedAt, r.settled)
		}
		r.rows[row.ID] = row
	}
	for _, x := range b.Rejects {
		r.rejects[x.ID] = x
	}
	if pass {
		r.settled = max(r.settled, b.Settled)
		r.cursor = b.Cursor
		r.identity = cmp.Or(b.Identity, r.identity)
	}
	if b.Done != nil {
		r.done = *b.Done
		if pass {
			r.floor, r.fields = b.Done.Floor, b.Done.Fields
		}
	}
	r.batches = append(r.batches, b)
	return nil
}

// met is how many rows the last read handed over.
func (r *reader) met() (n int) {
	for _, b := range r.batches {
		n += len(b.Rows) + len(b.Rejects)
	}
	return n
}

func (r *reader) has(ids ...int64) {
	r.t.Helper()
	for _, id := range ids {
		if _, ok := r.rows[id]; !ok {
			r.t.Errorf("order %d was never read", id)
		}
	}
}

// settles polls until settled has passed at, for at most 20 s.
func (r *reader) settles(at schemas.Instant) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); r.settled <= at; {
		if time.Now().After(end) {
			r.t.Fatalf("settled stands at %s and does not pass %s", r.settled, at)
		}
		r.pause()
		r.poll()
	}
}

// pause leaves the processor to others between two polls that wait for something.
func (r *reader) pause() { _ = wait.For(r.t.Context(), 10*time.Millisecond) }

var errCrash = errors.New("crash")

// until polls until done says so, for at most 30 s.
func (r *reader) until(what string, done func(poller.Done) bool) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		if done(r.poll()) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s does not come about: settled %s, done %+v", what, r.settled, r.done)
		}
		r.pause()
	}
}

// sameAs compares what was read with the table: every order, at its newest updated_at, and no other.
func (r *reader) sameAs(s *shop) {
	r.t.Helper()
	const sql = "SELECT id, updated_at AT TIME ZONE 'UTC' FROM orders WHERE updated_at IS NOT NULL"
	rows, err := s.admin.Query(r.t.Context(), sql)
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		var id int64
		var at time.Time
		if err := rows.Scan(&id, &at); err != nil {
			r.t.Fatal(err)
		}
		n++
		if got, ok := r.rows[id]; !ok || got.UpdatedAt != schemas.InstantOf(at) {
			r.t.Errorf("order %d: read at %v (%v), the table has %v", id, got.UpdatedAt, ok, at)
		}
	}
	if rows.Err() != nil {
		r.t.Fatal(rows.Err())
	}
	if n != len(r.rows) {
		r.t.Errorf("%d orders were read, the table has %d", len(r.rows), n)
	}
}

// timeouts is the count of statements that the server cancelled.
func (r *reader) timeouts() float64 {
	r.t.Helper()
	const name = "storestream_sql_timeouts_total"
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	r.t.Fatalf("no metric %s", name)
	return 0
}
