package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// brokenOrders makes orders a view of n rows of base, of which those that the condition names make a query
// fail.
func (s *shop) brokenOrders(n int, view, indexes string) {
	s.t.Helper()
	s.exec("ALTER TABLE orders RENAME TO base")
	s.exec(strings.Replace(fmt.Sprintf(manyOrders, n), "INTO orders", "INTO base", 1))
	s.exec(indexes)
	s.exec("ANALYZE base")
	s.exec(view + mayRead)
}

// raising makes the function check(id), which raises an error with a SQLSTATE for the rows of a condition.
func raising(sqlstate, condition string) string {
	return fmt.Sprintf(`CREATE FUNCTION checked(id bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
		BEGIN IF %s THEN RAISE EXCEPTION 'of Jane Doe' USING ERRCODE = '%s'; END IF; RETURN 1; END $$;`, condition,
		sqlstate)
}

// isBroken reads with every kind of read, and checks that those ids are dead letters and all others are rows.
func (r *reader) isBroken(n int, sqlstate, field string, bad ...int64) {
	r.t.Helper()
	slices.Sort(bad)
	first := map[int64]string{}
	suspects := []poller.Suspect{{ID: bad[0]}, {ID: bad[0] + 1}}
	for _, q := range []poller.Request{{}, {Kind: poller.Full, From: schemas.MinInstant},
		{Kind: poller.Lookup, Suspects: suspects}} {
		clear(r.rejects)
		if q.Kind == poller.Full {
			clear(r.rows)
		}
		if err := r.read(q); err != nil {
			r.t.Fatalf("a read of kind %d: %v", q.Kind, err)
		}
		want := bad
		if q.Kind == poller.Lookup {
			want = bad[:1]
		}
		if got := slices.Sorted(maps.Keys(r.rejects)); !slices.Equal(got, want) {
			r.t.Errorf("a read of kind %d: dead letters of %d, expected %d", q.Kind, got, want)
		}
		if len(r.rows) != n-len(bad) || !r.done.Complete {
			r.t.Errorf("a read of kind %d: %d rows, expected %d; %+v", q.Kind, len(r.rows), n-len(bad), r.done)
		}
		for id, x := range r.rejects {
			text := fmt.Sprint(x.Err, string(x.Row))
			if !x.HasID || x.Field != field || !strings.Contains(text, "SQLSTATE "+sqlstate) ||
				!strings.Contains(text, fmt.Sprintf(`{"id":%d`, id)) || strings.Contains(text, "Jane") {
				r.t.Errorf("order %d: %+v %s", id, x, x.Row)
			}
			if before, ok := first[id]; ok && before != string(x.Row) {
				r.t.Errorf("order %d: its letter was %s and is %s", id, before, x.Row)
			}
			first[id] = string(x.Row)
		}
	}
}

const noIndex = "ALTER TABLE base DROP CONSTRAINT orders_pkey; DROP INDEX orders_updated_at_id_idx"

func TestARowThatTheDatabaseCannotReadIsADeadLetterAndTheOthersAreRead(t *testing.T) {
	divides := `CREATE VIEW orders AS SELECT id,
		user_id / (CASE WHEN id IN (1, 700, 701, 2500) THEN 0 ELSE 1 END) AS user_id,
		status, total_amount, created_at, updated_at FROM base`
	checks := `CREATE VIEW orders AS SELECT id, checked(id) AS user_id, status, total_amount, created_at,
		updated_at FROM base`
	filters := `CREATE VIEW orders AS SELECT * FROM base WHERE checked(id) > 0`
	raises := func(sqlstate string) string { return raising(sqlstate, "id IN (1, 700, 701, 2500)") }
	for name, c := range map[string]struct{ view, indexes, sqlstate, field string }{
		"a division by zero":                  {divides, "SELECT 1", "22012", "user_id"},
		"a division by zero, no index":        {divides, noIndex, "22012", "user_id"},
		"a function":                          {raises("P0001") + checks, "SELECT 1", "P0001", "user_id"},
		"a broken value":                      {raises("XX001") + checks, "SELECT 1", "XX001", "user_id"},
		"a broken value, no index":            {raises("XX001") + checks, noIndex, "XX001", "user_id"},
		"a key that cannot be read":           {raises("XX001") + filters, "SELECT 1", "XX001", "id"},
		"a key that cannot be read, no index": {raises("23514") + filters, noIndex, "23514", "id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.brokenOrders(3000, c.view, c.indexes)
			r := s.readerOf(shortOverlap)
			r.isBroken(3000, c.sqlstate, c.field, 1, 700, 701, 2500)
			r.settles(s.instant("SELECT max(updated_at) FROM base"))
		})
	}
}

// A transaction's limit may be smaller than the number of rows before the one whose key cannot be read. And
// one of those rows may make the server fail, too.
func TestRowsBeforeAKeyThatCannotBeReadAreReadInSeveralTransactions(t *testing.T) {
	for name, indexes := range map[string]string{"an index": "SELECT 1", "no index": noIndex} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.brokenOrders(600, raising("XX001", "id IN (5, 500)")+`CREATE VIEW orders AS SELECT id,
				user_id / (CASE WHEN id IN (5, 300, 301) THEN 0 ELSE 1 END) AS user_id, status, total_amount, created_at,
				updated_at FROM base WHERE checked(id) > 0`, indexes)
			r := s.readerOf(postgres.SourceConfig{MaxRows: 50})
			for _, kind := range []poller.Kind{poller.Pass, poller.Full} {
				clear(r.rows)
				clear(r.rejects)
				if err := r.read(poller.Request{Kind: kind, From: schemas.MinInstant}); err != nil {
					t.Fatal(err)
				}
				if got := slices.Sorted(maps.Keys(r.rejects)); len(r.rows) != 596 ||
					!slices.Equal(got, []int64{5, 300, 301, 500}) {
					t.Errorf("a read of kind %d: %d rows, expected 596; dead letters of %d", kind, len(r.rows), got)
				}
			}
		})
	}
}

// The read asks for the keys of some rows, and then for the rows up to the last key. A row that comes in
// between takes the place of one of them.
func TestRowsThatComeAfterTheKeysPushNoOtherOut(t *testing.T) {
	for kind, name := range map[poller.Kind]string{poller.Pass: "a pass", poller.Full: "a sweep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.brokenOrders(30, raising("22012", "id = 20")+`CREATE VIEW orders AS SELECT id, checked(id) AS user_id,
				status, total_amount, created_at, updated_at FROM base`,
				"UPDATE base SET id = -id; UPDATE base SET id = -2 * id")
			late := s.writer()
			g := openGate(t, server.Port)
			defer g.cut()
			var comes sync.Once
			var err error
			g.watch(func() func([]byte) {
				return func(b []byte) {
					if bytes.Contains(b, []byte("updated_at\x00")) && !bytes.Contains(b, []byte("status\x00")) { // keys
						comes.Do(func() {
							_, err = late.Exec(context.Background(), `INSERT INTO base SELECT id - 1, 1, 'Shipped', 1, created_at,
								updated_at - interval '500 us' FROM base`)
						})
					}
				}
			})
			r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
			failed := r.read(poller.Request{Kind: kind, From: schemas.MinInstant})
			if err != nil || failed != nil || len(r.rejects) != 1 {
				t.Fatalf("%v, %v, dead letters: %v", err, failed, r.rejects)
			}
			for id := int64(2); id <= 60; id += 2 {
				if id != 20 {
					r.has(id)
				}
			}
		})
	}
}

// So many in a row are no accident. The rows behind them are read, and settled stays before them.
func TestManyRowsInARowThatTheDatabaseCannotReadBlockAndTheOthersAreRead(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.brokenOrders(200, raising("22012", "id BETWEEN 50 AND 74")+`CREATE VIEW orders AS SELECT id, checked(id) AS
		user_id, status, total_amount, created_at, updated_at FROM base`, "SELECT 1")
	r := s.readerOf(shortOverlap)
	for range 2 {
		err := r.read(poller.Request{Kind: poller.Pass})
		var blocked *poller.BlockedError
		if !errors.As(err, &blocked) || !blocked.Publishes || !strings.Contains(err.Error(), "SQLSTATE 22012") ||
			!strings.Contains(err.Error(), "none of 20 rows") {
			t.Errorf("%v, expected a BlockedError", err)
		}
		if len(r.rows) != 175 || r.settled > s.instant("SELECT updated_at FROM base WHERE id = 50") {
			t.Errorf("%d rows, expected 175; settled %s", len(r.rows), r.settled)
		}
	}
	s.exec("CREATE OR REPLACE FUNCTION checked(id bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
	r.poll()
	r.sameAs(s)
}

// Nothing about a row is known from an error that another try may not have, or that is about the query.
func TestAnErrorThatIsAboutNoRowMakesNoDeadLetter(t *testing.T) {
	for _, sqlstate := range []string{"55P03", "40P01", "40001", "57P01", "57014", "42501", "53200", "53100",
		"08006", "0A000", "42883", "XX000", "22P03"} {
		t.Run(sqlstate, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.brokenOrders(30, raising(sqlstate, "id = 20")+`CREATE VIEW orders AS SELECT id, checked(id) AS
				user_id, status, total_amount, created_at, updated_at FROM base`, "SELECT 1")
			r := s.readerOf(shortOverlap)
			if err := r.read(poller.Request{Kind: poller.Pass}); err == nil || len(r.rejects) > 0 {
				t.Errorf("%v, %d dead letters", err, len(r.rejects))
			}
			if r.settled > s.instant("SELECT updated_at FROM base WHERE id = 20") {
				t.Errorf("settled %s is past the row", r.settled)
			}
		})
	}
}

// The view computes all of its rows for each query, so no row can be found by itself.
func TestAQueryThatFailsForNoRowMakesNoDeadLetter(t *testing.T) {
	s := openShop(t, ordersTable)
	s.brokenOrders(30, `CREATE VIEW orders AS SELECT id,
		user_id / (CASE WHEN id = 20 THEN 0 ELSE 1 END) AS user_id, status,
		row_number() OVER () + total_amount AS total_amount, created_at, updated_at FROM base`,
		"SELECT 1")
	r := s.readerOf(shortOverlap)
	if err := r.read(poller.Request{Kind: poller.Pass}); err == nil || len(r.rejects) > 0 ||
		!strings.Contains(err.Error(), "SQLSTATE 22012") {
		t.Errorf("%v, %d dead letters", err, len(r.rejects))
	}
}

// Fewer rows than make a bad chunk have changed, and the server fails because of every row of the table.
func TestACauseThatLiesInAllRowsMakesNoDeadLetterOfThoseThatHaveChanged(t *testing.T) {
	for name, restarted := range map[string]bool{"a good row is known": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.brokenOrders(30, `CREATE TABLE rates AS SELECT 1 AS rate; CREATE VIEW orders AS SELECT id,
				user_id * (SELECT rate FROM rates) AS user_id, status, total_amount, created_at, updated_at FROM base`,
				"SELECT 1")
			r := s.readerOf(shortOverlap)
			r.poll()
			s.exec("INSERT INTO rates VALUES (2)")
			s.exec("UPDATE base SET updated_at = now() WHERE id IN (3, 4, 7)")
			if restarted {
				r.source = s.readerOf(shortOverlap).source
			}
			for _, q := range []poller.Request{{}, {Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 3}}}} {
				err := r.read(q)
				var blocked *poller.BlockedError
				if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "SQLSTATE 21000") || len(r.rejects) > 0 {
					t.Errorf("a read of kind %d: %v, dead letters: %v", q.Kind, err, r.rejects)
				}
			}
			if r.settled > s.instant("SELECT max(updated_at) FROM base") {
				t.Errorf("settled %s is past the rows", r.settled)
			}
			s.exec("DELETE FROM rates WHERE rate = 2")
			r.poll()
			r.sameAs(s)
		})
	}
}

// No key stands for a row whose id is NULL. It is a dead letter without an id, as beside good rows.
func TestARowWithoutAnIDBehindOneThatTheDatabaseCannotReadStopsNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.brokenOrders(30, `CREATE VIEW orders AS SELECT id, user_id / (CASE WHEN id IN (5, 25) THEN 0 ELSE 1 END)
		AS user_id, status, total_amount, created_at, updated_at FROM base`,
		"ALTER TABLE base DROP CONSTRAINT orders_pkey, ALTER id DROP NOT NULL")
	s.exec("UPDATE base SET id = NULL WHERE id = 20")
	r := s.readerOf(shortOverlap)
	r.poll()
	nameless := 0
	for _, b := range r.batches {
		for _, x := range b.Rejects {
			if !x.HasID {
				nameless++
			}
		}
	}
	if got := slices.Sorted(maps.Keys(r.rejects)); nameless != 1 || !slices.Equal(got, []int64{0, 5, 25}) ||
		len(r.rows) != 27 {
		t.Errorf("%d rows, dead letters of %d, %d of them without an id", len(r.rows), got, nameless)
	}
}

// The place of a key that cannot be read is found by the keys around it. A row without one hides it.
func TestARowWithoutAnIDBeforeAKeyThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.brokenOrders(30, raising("XX001", "id = 5")+`CREATE VIEW orders AS SELECT * FROM base
		WHERE checked(id) > 0`, noIndex+"; ALTER TABLE base ALTER id DROP NOT NULL")
	s.exec("UPDATE base SET id = NULL WHERE id = 2")
	r := s.readerOf(shortOverlap)
	err := r.read(poller.Request{})
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "a row has no id (NULL)") {
		t.Errorf("%v, expected a BlockedError that names the row without an id", err)
	}
	if r.has(1); r.settled > s.instant("SELECT updated_at FROM base WHERE id IS NULL") {
		t.Errorf("settled %s is past the row without an id", r.settled)
	}
	s.exec("UPDATE base SET id = 2 WHERE id IS NULL")
	r.poll()
	if r.has(2); len(r.rows) != 29 {
		t.Errorf("%d rows, expected 29", len(r.rows))
	}
}

// The cause begins while rows are read, and lies in all of them. The server is not asked for each row.
func TestAReadEndsAfterTwentyRowsOfWhichNoneMayBeTheCause(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.brokenOrders(200, `CREATE TABLE rates AS SELECT 1 AS rate; CREATE VIEW orders AS SELECT id,
		user_id * (SELECT rate FROM rates) AS user_id, status, total_amount, created_at, updated_at FROM base`,
		"SELECT 1")
	r := s.readerOf(postgres.SourceConfig{MaxRows: 30, Overlap: shortOverlap.Overlap})
	r.before = func(poller.Batch) error {
		r.before = nil
		_, err := s.admin.Exec(t.Context(), "INSERT INTO rates VALUES (2)")
		return err
	}
	for range 2 {
		err := r.read(poller.Request{})
		var blocked *poller.BlockedError
		if !errors.As(err, &blocked) || blocked.Publishes || !strings.Contains(err.Error(), "none of 20 rows") ||
			!strings.Contains(err.Error(), "SQLSTATE 21000") {
			t.Errorf("%v, expected a BlockedError", err)
		}
		if len(r.rows) != 30 || len(r.rejects) > 0 {
			t.Errorf("%d rows before it, expected 30; dead letters: %v", len(r.rows), r.rejects)
		}
		if r.settled > s.instant("SELECT updated_at FROM base WHERE id = 31") {
			t.Errorf("settled %s is past rows that were not read", r.settled)
		}
	}
	s.exec("DELETE FROM rates WHERE rate = 2")
	r.poll()
	r.sameAs(s)
}
