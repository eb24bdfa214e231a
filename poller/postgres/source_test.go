package postgres_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

func TestAFullReadMeetsEveryRowFromStartOnAndThoseWithoutADate(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(`INSERT INTO orders SELECT id, 1, 'Complete', 1, c::timestamptz, u::timestamptz FROM (VALUES
		(-5, '2026-03-01Z', '2026-03-02Z'), (1, '2026-01-01Z', '2026-01-02Z'), (2, '2026-01-01Z', '2026-02-01Z'),
		(3, '2026-02-03Z', '2026-01-05Z'), (4, '2026-01-01Z', NULL)) v (id, c, u)`)
	r := s.readerOf(postgres.SourceConfig{MaxRows: 1})
	from := schemas.InstantOf(query[time.Time](s, "SELECT '2026-02-01Z'::timestamptz"))
	if err := r.read(poller.Request{Kind: poller.Full, From: from}); err != nil {
		t.Fatal(err)
	}
	r.has(-5, 2, 3)
	if _, found := r.rows[1]; found {
		t.Error("order 1 was neither created nor updated from start on, and was read")
	}
	if _, found := r.rejects[4]; !found {
		t.Error("order 4, without updated_at, was not met")
	}
	for _, b := range r.batches {
		if b.Settled != schemas.MinInstant || b.Cursor != nil {
			t.Errorf("a full read says settled %s, cursor %v", b.Settled, b.Cursor)
		}
	}
	if !r.done.Complete {
		t.Error("a full read does not say that it is complete")
	}
}

// The lowest id there is comes after no other one.
func TestAFullReadMeetsEveryIDAlsoTheLowestAndTheHighest(t *testing.T) {
	const low, high = math.MinInt64, math.MaxInt64
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf("ALTER TABLE orders ALTER COLUMN id TYPE bigint; INSERT INTO orders SELECT id, 1, "+
		"'Complete', 1, now(), now() FROM unnest('{%d,%d,-1,0,1,%d,%d}'::bigint[]) AS v (id)",
		low, low+1, high-1, high))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 1})
	if err := r.read(poller.Request{Kind: poller.Full, From: schemas.MinInstant}); err != nil {
		t.Fatal(err)
	}
	var order []int64
	for _, b := range r.batches {
		for _, row := range b.Rows {
			order = append(order, row.ID)
		}
	}
	if !slices.Equal(order, []int64{low, low + 1, -1, 0, 1, high - 1, high}) || !r.done.Complete {
		t.Errorf("%d", order)
	}
}

// A newcomer has to be able to follow a row. The stack is deepest where a batch is used.
func TestFewFunctionsLieBetweenAReadAndItsBatches(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(wideOrders(1, 50, 100_000))
	r := s.reader()
	r.before = func(poller.Batch) error {
		var own []string
		callers := make([]uintptr, 100)
		for frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)]); ; {
			frame, more := frames.Next()
			if strings.Contains(frame.Function, "/poller/postgres.") {
				own = append(own, frame.Function)
			}
			if !more {
				break
			}
		}
		if len(own) > 5 {
			t.Errorf("%d functions: %q", len(own), own)
		}
		return nil
	}
	r.poll()
}

func TestALookupReadsTheNamedRowsAsTheyAreNow(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 100))
	r := s.reader()
	suspects := []poller.Suspect{{ID: 7}, {ID: 7}, {ID: 99}, {ID: 1000}}
	if err := r.read(poller.Request{Kind: poller.Lookup, Suspects: suspects}); err != nil {
		t.Fatal(err)
	}
	if r.has(7, 99); len(r.rows) != 2 {
		t.Errorf("%d rows were read, expected 2", len(r.rows))
	}
	if r.done.Started == 0 {
		t.Error("a lookup does not say that it is done")
	}
}

func TestALookupThatMeetsNoRowSaysWhetherThereIsAny(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 100))
	r := s.reader()
	for _, test := range []struct {
		change string
		id     int64
		empty  bool
	}{{"DELETE FROM orders WHERE id = 7", 7, false}, {"DELETE FROM orders WHERE id <> 9", 9, false},
		{"UPDATE orders SET updated_at = NULL", 7, false}, {"DELETE FROM orders", 7, true}} {
		s.exec(test.change)
		err := r.read(poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: test.id}}})
		if err != nil || r.done.Empty != test.empty {
			t.Errorf("after %s: %+v, %v", test.change, r.done, err)
		}
	}
}

func TestATableThatIsAlteredWhileItIsReadIsReadOn(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 700))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
	alter := []string{
		"ALTER TABLE orders ADD COLUMN note text DEFAULT 'new'",
		"ALTER TABLE orders RENAME user_id TO customer; ALTER TABLE orders ADD COLUMN user_id bigint DEFAULT 42",
		"ALTER TABLE orders ALTER total_amount TYPE float8",
		"ALTER TABLE orders ALTER id TYPE integer",
		"ALTER TABLE orders ALTER updated_at TYPE timestamp USING updated_at AT TIME ZONE 'UTC'",
		"ALTER TABLE orders ALTER updated_at TYPE timestamptz USING updated_at AT TIME ZONE 'UTC'",
	}
	n := 0
	r.before = func(poller.Batch) error {
		if n < len(alter) {
			s.exec(alter[n])
		}
		n++
		return nil
	}
	r.poll()
	if n < len(alter) {
		t.Fatalf("the read was over after %d batches, before every change", n)
	}
	r.before = nil
	r.sameAs(s)
}

func TestAColumnThatComesIsReadByASweep(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec("ALTER TABLE orders DROP COLUMN user_id; INSERT INTO orders VALUES (1, 'Complete', 1, now(), now())")
	r := s.reader()
	r.poll()
	before := r.rows[1].Value
	s.exec("ALTER TABLE orders ADD COLUMN user_id bigint DEFAULT 42")
	if err := r.read(poller.Request{Kind: poller.Full, From: schemas.MinInstant}); err != nil {
		t.Fatal(err)
	}
	if schemas.Hash(before) == schemas.Hash(r.rows[1].Value) {
		t.Error("a column that came is not read by a sweep")
	}
}
