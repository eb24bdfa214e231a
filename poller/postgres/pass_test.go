package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

const manyOrders = `INSERT INTO orders SELECT i, 1, 'Complete', i, t, t
	FROM generate_series(1, %d) i, LATERAL (SELECT now() - interval '1 day' + i * interval '1 ms' AS t) x`

func TestRowsWrittenWhileAFirstLoadRunsAreRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 2000))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
	n := 0
	r.before = func(poller.Batch) error {
		n++
		s.exec(put(2000+n, "clock_timestamp()"))    // new
		s.exec(put(n, "clock_timestamp()"))         // read already
		s.exec(put(2001-n*20, "clock_timestamp()")) // not read yet
		return nil
	}
	r.poll()
	if n < 20 {
		t.Fatalf("the load took %d batches, too few to be disturbed", n)
	}
	r.before = nil
	r.poll()
	r.sameAs(s)
}

// Rows of one long stamp are final from the second chunk on, so the poller forgets them. If the table ceases
// to have a floor, the next pass meets them again.
func TestAFirstPassThatCalledRowsFinalIsLostIfTheTableCeasesToHaveAFloor(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 500))
	s.exec("UPDATE orders SET updated_at = now() - interval '1 minute'")
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
	n, final := 0, false
	r.before = func(b poller.Batch) error {
		final = final || slices.Contains(b.Final, true)
		if n++; n == 3 {
			s.exec("CREATE POLICY rows ON orders USING (true); ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
		}
		return nil
	}
	r.poll()
	if !final || r.lost != 1 {
		t.Errorf("called final: %v; passes lost: %d (%s)", final, r.lost, r.why.Why)
	}
	r.sameAs(s)
}

// One UPDATE gives every row the same updated_at. The reader crashes in the middle of them, again and again.
func TestACrashInTheMiddleOfEqualTimestampsSkipsNoneAndRepeatsOnlyAChunk(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 3000))
	s.exec("UPDATE orders SET updated_at = now() - interval '1 minute'")
	r := s.readerOf(postgres.SourceConfig{MaxRows: 250})
	read := 0
	for crashes := 0; ; crashes++ {
		n := 0
		r.before = func(b poller.Batch) error {
			if n++; n == 3 {
				return errCrash
			}
			read += len(b.Rows)
			return nil
		}
		err := r.read(poller.Request{Kind: poller.Pass})
		if err == nil {
			if crashes < 5 {
				t.Errorf("it crashed only %d times", crashes)
			}
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		// Another process, which knows only what was committed.
		r.source = s.readerOf(postgres.SourceConfig{MaxRows: 250}).source
	}
	r.sameAs(s)
	if read != 3000 {
		t.Errorf("%d rows were taken over in all, expected each of 3000 once", read)
	}
	if !r.done.Complete || r.cursor != nil {
		t.Errorf("after the last pass: done %+v, cursor %+v", r.done, r.cursor)
	}
	if want := s.instant("SELECT max(updated_at) FROM orders"); r.settled <= want {
		t.Errorf("the resumed pass settled only to %s, the rows are stamped %s", r.settled, want)
	}
}

// A cursor of ids that this server never gave out is another cluster's.
func TestACursorOfAnotherClusterIsNotTrusted(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 600))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
	n := 0
	r.before = func(poller.Batch) error {
		if n++; n == 4 {
			return errCrash
		}
		return nil
	}
	_ = r.read(poller.Request{Kind: poller.Pass})
	r.before = nil
	r.cursor.HorizonNext += 1 << 30
	r.cursor.Xmin += 1 << 30
	r.settled = schemas.MinInstant
	clear(r.rows)
	r.source = s.readerOf(postgres.SourceConfig{MaxRows: 100}).source
	r.poll()
	r.sameAs(s)
}

func TestMicrosecondsAreKeptSoThatNoNeighbourIsSkippedOrRepeatedForEver(t *testing.T) {
	s := openShop(t, ordersTable)
	for i, stamp := range []string{
		"2026-03-01 23:59:59.999998Z", "2026-03-01 23:59:59.999999Z",
		"2026-03-02 00:00:00Z", "2026-03-02 00:00:00.000001Z",
	} {
		s.exec(put(i+1, "'"+stamp+"'"))
	}
	r := s.readerOf(postgres.SourceConfig{MaxRows: 1})
	r.poll()
	r.sameAs(s)
	if got := r.rows[2].UpdatedAt.String(); got != "2026-03-01T23:59:59.999999Z" {
		t.Errorf("order 2 was read at %s", got)
	}
	r.poll()
	for _, b := range r.batches {
		if len(b.Rows) > 0 {
			t.Errorf("an idle poll repeats order %d of %s, settled %s", b.Rows[0].ID, b.Rows[0].UpdatedAt, r.settled)
		}
	}
}

// The pooler gives each transaction any of 20 server connections, and 60 clients share them.
func TestSixtyClientsReadThroughATransactionPooler(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 500))
	var wg sync.WaitGroup
	for range 60 {
		r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
		wg.Go(func() {
			for range 2 {
				if err := r.read(poller.Request{}); err != nil {
					t.Errorf("read: %v", err)
				}
				if err := r.read(poller.Request{Kind: poller.Full, From: schemas.MinInstant}); err != nil {
					t.Errorf("read in full: %v", err)
				}
			}
			if len(r.rows) != 500 {
				t.Errorf("a client read %d rows of 500", len(r.rows))
			}
		})
	}
	wg.Wait()
}

func TestStrangeTimestampsAreReadOrRejectedAndStopNothing(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	s.exec(put(2, "now() + interval '10 years'"))
	s.exec(put(3, "NULL"))
	s.exec(put(4, "'infinity'"))
	s.exec(put(5, "'-infinity'"))
	s.exec(put(6, "'0044-03-15 BC'"))
	s.exec(put(7, "'20260-01-01'"))
	s.exec(put(8, "'0001-01-01Z'"))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 1, Overlap: time.Millisecond})
	r.poll()
	r.has(1, 2, 8)
	for _, id := range []int64{3, 4, 5, 6, 7} {
		if x, ok := r.rejects[id]; !ok || x.Field != "created_at" && x.Field != "updated_at" {
			t.Errorf("order %d: reject %+v, expected one because of its timestamps", id, x)
		}
	}
	r.settles(s.instant("SELECT updated_at FROM orders WHERE id = 1"))
	if r.settled > schemas.InstantOf(time.Now().Add(time.Hour)) {
		t.Errorf("settled followed a row into the future: %s", r.settled)
	}
	s.exec(put(2, "clock_timestamp()")) // back from the future
	r.poll()
	if got, want := r.rows[2].UpdatedAt, s.instant("SELECT updated_at FROM orders WHERE id = 2"); got != want {
		t.Errorf("order 2 was read at %s, it went back to %s", got, want)
	}
}

func TestNaiveTimestampsMeanUTCWhateverTheRolesZone(t *testing.T) {
	s := openShop(t, `CREATE TABLE orders (id int PRIMARY KEY, user_id int, status varchar(20),
		total_amount float8, created_at timestamp, updated_at timestamp)`)
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET timezone = 'Asia/Tokyo'", role, s.name))
	s.exec(put(1, "'2026-03-01 10:00:00.000001'"))
	r := s.readerOf(shortOverlap)
	r.poll()
	if got := r.rows[1].UpdatedAt.String(); got != "2026-03-01T10:00:00.000001Z" {
		t.Errorf("order 1 was read at %s", got)
	}
	s.exec(put(2, "clock_timestamp() AT TIME ZONE 'UTC'"))
	r.poll()
	r.has(2)
	r.settles(r.rows[2].UpdatedAt)
}

func TestAPageOfTwentyBadRowsHoldsSettledAndHealsByItself(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 300))
	s.exec("UPDATE orders SET created_at = NULL WHERE id BETWEEN 101 AND 200")
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
	w := s.writer() // beside it, rows are called final
	run(t, w, "BEGIN")
	run(t, w, put(9001, "now()"))
	err := r.read(poller.Request{Kind: poller.Pass})
	run(t, w, "ROLLBACK")
	var blocked *poller.BlockedError
	for _, b := range r.batches {
		if before := len(b.Rows) > 0 && b.Rows[0].ID <= 100; before != (b.Final != nil) {
			t.Errorf("final before the bad page or behind it: %v, %d rows", b.Final, len(b.Rows))
		}
	}
	if !errors.As(err, &blocked) || !blocked.Publishes {
		t.Fatalf("read: %v, expected a BlockedError that says that other rows go on", err)
	}
	r.has(1, 100, 201, 300)
	if len(r.rejects) > 0 {
		t.Errorf("%d rejects of a bad page were handed over", len(r.rejects))
	}
	if bound := s.instant("SELECT updated_at FROM orders WHERE id = 101"); r.settled >= bound {
		t.Errorf("settled passed the bad page: %s, it begins after %s", r.settled, bound)
	}
	if r.cursor == nil || r.cursor.ID != 100 {
		t.Errorf("cursor %+v, expected the row before the bad page", r.cursor)
	}
	s.exec("UPDATE orders SET created_at = now() WHERE created_at IS NULL")
	r.poll()
	r.sameAs(s)
}
