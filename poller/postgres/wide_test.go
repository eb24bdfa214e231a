package postgres_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// rowsSent counts the rows that servers send through a gate.
type rowsSent struct{ n atomic.Int64 }

// follow reads one connection: after the type of a message come its length in four bytes, and itself.
func (r *rowsSent) follow() func([]byte) {
	var head []byte
	rest := 0 // of the message in hand
	return func(b []byte) {
		for len(b) > 0 {
			if rest > 0 {
				n := min(rest, len(b))
				rest, b = rest-n, b[n:]
				continue
			}
			head, b = append(head, b[0]), b[1:]
			if len(head) == 5 {
				rest = int(binary.BigEndian.Uint32(head[1:])) - 4
				if head[0] == 'D' && rest > 60 { // not the clock's
					r.n.Add(1)
				}
				head = head[:0]
			}
		}
	}
}

// wideOrders inserts n orders from id on, a second apart, whose status has so many bytes.
func wideOrders(from, n, width int) string {
	return fmt.Sprintf(`INSERT INTO orders SELECT i, 1, repeat('x', %d), 9.99, now(),
		now() - interval '1 day' + i * interval '1 s' FROM generate_series(%d, %d) i`, width, from, from+n-1)
}

// Nobody knows how wide the next rows are.
func TestRowsAreReadOnceHoweverWideTheyAre(t *testing.T) {
	const wide = 100_000
	for name, fill := range map[string][]string{
		"wide rows alone": {wideOrders(1, 200, wide)},
		"a narrow one between two": {wideOrders(1, 300, wide),
			"UPDATE orders SET status = 'Shipped' WHERE id % 2 = 0"},
		"many narrow ones, some wide, and again": {wideOrders(1, 9_000, 5), wideOrders(10_001, 100, wide),
			wideOrders(11_001, 9_000, 5), wideOrders(22_001, 100, wide), wideOrders(23_001, 4_000, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			for _, sql := range fill {
				s.exec(sql)
			}
			rows := query[int64](s, "SELECT count(*) FROM orders")
			var sent rowsSent
			g := openGate(t, server.Port)
			g.watch(sent.follow)
			defer g.cut() // or closing the reader would wait for an answer to its farewell
			r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
			r.before = func(b poller.Batch) error {
				bytes := 0
				for _, row := range b.Rows {
					bytes += len(row.Value)
				}
				if bytes > 1<<20+1<<19+wide+100 {
					t.Errorf("a batch of %d bytes in %d rows", bytes, len(b.Rows))
				}
				return nil
			}
			r.poll()
			r.sameAs(s)
			if n := sent.n.Load(); n > rows+rows/5 {
				t.Errorf("the server sent %d rows for %d", n, rows)
			}
		})
	}
}

// The question whether the table has any row reads none.
func TestALookupOfRowsThatAreGoneReadsNoOtherWideRows(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(wideOrders(1, 20, 1<<20))
	var sent rowsSent
	g := openGate(t, server.Port)
	g.watch(sent.follow)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
	r.poll()
	before := sent.n.Load()
	if err := r.read(poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 1000}}}); err != nil {
		t.Fatal(err)
	}
	if n := sent.n.Load() - before; n > 3 || r.done.Empty {
		t.Errorf("the server sent %d rows for none, and the table counts as empty: %v", n, r.done.Empty)
	}
}

// The last question of a lookup is tried again like every other.
func TestALookupGoesOnAfterItsConnectionWasEnded(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	r := openReader(t, server.DSN(role, password, s.name), postgres.SourceConfig{})
	r.poll()
	r.before = func(b poller.Batch) error {
		of := " FROM pg_stat_activity WHERE usename = '" + role + "' AND datname = current_database()"
		s.exec("DO $$ BEGIN PERFORM pg_terminate_backend(pid)" + of + "; WHILE EXISTS (SELECT" + of + ") LOOP " +
			"PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$")
		return nil
	}
	if err := r.read(poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 1000}}}); err != nil {
		t.Fatal(err)
	}
	if r.done.Empty {
		t.Error("the table counts as empty")
	}
}

// Four connections are open at most. The server waits in the middle of the rows, which are wider than
// expected.
func TestACallerThatBreaksOffAmongWideRowsLeavesNoConnectionBehind(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(wideOrders(1, 100, 100_000))
	r := s.reader()
	for i := range 10 {
		kind := []poller.Kind{poller.Pass, poller.Full}[i%2]
		r.before = func(poller.Batch) error { return errCrash }
		if err := r.read(poller.Request{Kind: kind}); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	r.before = nil
	r.poll()
	r.sameAs(s)
}

// A value may have 1 GB. Its row becomes a dead letter, the others are published, and the memory of it is
// never taken.
func TestARowThatIsTooLongIsCutInTheDatabase(t *testing.T) {
	const table = `CREATE TYPE shade AS (name text, code text);
		CREATE TABLE orders (id bigint PRIMARY KEY, user_id text, status %s, total_amount text,
		created_at varchar, updated_at timestamptz); CREATE INDEX ON orders (updated_at, id)`
	const stamps = "'2026-01-02T03:04:05Z', now() - interval '1 day' + i * interval '1 s'"
	for name, c := range map[string]struct{ kind, change, want string }{
		"one value, compressed": {"text", "status = repeat('x', 60000000)", "status has 60000000 bytes"},
		"one value, as it is":   {"text", "status = repeat('y', 40000000)", "status has 40000000 bytes"},
		"several, none of them too long by itself": {"varchar",
			"user_id = repeat('7', 4000000), status = repeat('x', 3000000), total_amount = repeat('1', 3000000)",
			"user_id has 4000000 bytes, status has 3000000 bytes, total_amount has 3000000 bytes"},
		"a type of the user's": {"shade", "status = ROW(repeat('x', 5000000), repeat('y', 5000000))",
			"status has 10000003 bytes"},
		"a time": {"text", "created_at = repeat('2', 10000000)", "created_at has 10000000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, fmt.Sprintf(table, c.kind))
			if name == "one value, as it is" {
				s.exec("ALTER TABLE orders ALTER status SET STORAGE EXTERNAL")
			}
			status := "'Shipped'"
			if c.kind == "shade" {
				status = "NULL"
			}
			s.exec("INSERT INTO orders SELECT i, '1', " + status + ", '9.99', " + stamps +
				" FROM generate_series(1, 60) i")
			s.exec("UPDATE orders SET " + c.change + " WHERE id = 20")
			r := s.reader()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.poll()
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
				t.Errorf("reading took %d MiB", n>>20)
			}
			if len(r.rows) != 59 || len(r.rejects) != 1 {
				t.Fatalf("%d rows and %d rejects", len(r.rows), len(r.rejects))
			}
			x := r.rejects[20]
			if !strings.HasSuffix(x.Err, c.want) || !x.HasID || x.UpdatedAt == schemas.MinInstant ||
				!json.Valid(x.Row) || len(x.Row) > 1000 || !strings.Contains(string(x.Row), "left out)") {
				t.Errorf("%+v %.1000s", x.Err, x.Row)
			}
			for _, kind := range []poller.Kind{poller.Full, poller.Lookup, poller.Pass} {
				clear(r.rejects)
				if err := r.read(poller.Request{Kind: kind, Suspects: []poller.Suspect{{ID: 20}}}); err != nil {
					t.Fatal(err)
				}
				if kind != poller.Pass && len(r.rejects) != 1 {
					t.Errorf("a read of kind %v rejects %d", kind, len(r.rejects))
				}
			}
			s.exec("UPDATE orders SET user_id = '1', status = " + status + ", total_amount = '9.99', " +
				"created_at = '2026-01-02T03:04:05Z', updated_at = now() WHERE id = 20")
			r.poll()
			r.sameAs(s)
		})
	}
}
