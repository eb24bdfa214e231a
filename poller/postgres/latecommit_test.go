package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

func TestALateCommitWithAnEarlierStampIsRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	r := s.readerOf(postgres.SourceConfig{Overlap: 500 * time.Millisecond})
	r.poll()

	late := s.writer()
	run(t, late, "BEGIN")
	run(t, late, put(2, "clock_timestamp()"))
	s.exec(put(3, "clock_timestamp()"))
	r.poll()
	r.has(1, 3)
	run(t, late, "COMMIT")
	r.poll()
	r.has(2)
	r.settles(s.instant("SELECT updated_at FROM orders WHERE id = 3"))
}

// With nothing else going on, a snapshot's xmin and xmax stand still at the id of the open writer. A rule
// that goes by xmax would settle past it.
func TestAWriterOpenOnAnOtherwiseQuietDatabaseHoldsSettledBack(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	r := s.readerOf(postgres.SourceConfig{Overlap: 50 * time.Millisecond})
	r.poll()

	quiet := s.writer()
	run(t, quiet, "BEGIN")
	run(t, quiet, put(2, "clock_timestamp()"))
	stamp := s.instant("SELECT clock_timestamp()")
	for s.instant("SELECT clock_timestamp()") < stamp.Add(300*time.Millisecond) {
		r.poll()
	}
	if r.settled > stamp {
		t.Errorf("settled moved to %s, past the stamp %s of a transaction that is open", r.settled, stamp)
	}
	run(t, quiet, "COMMIT")
	r.poll()
	r.has(2)
	r.settles(stamp)
}

func TestTransactionsThatCommitInTheOtherOrderAreAllRead(t *testing.T) {
	s := openShop(t, ordersTable)
	r := s.readerOf(postgres.SourceConfig{Overlap: 500 * time.Millisecond})
	r.poll()
	writers := make([]interface{ commit() }, 0, 8)
	for i := range 8 {
		w := s.writer()
		run(t, w, "BEGIN")
		run(t, w, put(i+1, "clock_timestamp()"))
		writers = append(writers, commitFunc(func() { run(t, w, "COMMIT") }))
		r.poll()
	}
	for i := range writers {
		writers[len(writers)-1-i].commit()
		r.poll()
		r.has(int64(len(writers) - i))
	}
	r.settles(s.instant("SELECT max(updated_at) FROM orders"))
	r.sameAs(s)
}

type commitFunc func()

func (f commitFunc) commit() { f() }

// A transaction without an id is in no snapshot. Its now() is from before the poll. overlap covers it.
func TestATransactionThatBeganBeforeAPollAndWritesAfterItIsRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	r := s.reader()
	w := s.writer()
	run(t, w, "BEGIN; SELECT now()")
	r.poll()
	run(t, w, put(2, "now()"))
	r.poll()
	run(t, w, "COMMIT")
	r.poll()
	r.has(1, 2)
}

// A prepared transaction stays open after its client has gone.
func TestAPreparedTransactionHoldsSettledBackUntilItIsCommitted(t *testing.T) {
	s := openShop(t, ordersTable)
	r := s.readerOf(postgres.SourceConfig{Overlap: 20 * time.Millisecond})
	r.poll()
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(1, "clock_timestamp()"))
	stamp := s.instant("SELECT clock_timestamp()")
	run(t, w, "PREPARE TRANSACTION 'forgotten'")
	t.Cleanup(func() { // or the loads of other tests would wait for it
		_, _ = s.admin.Exec(context.Background(), "ROLLBACK PREPARED 'forgotten'")
	})
	r.until("holding", func(d poller.Done) bool { return d.Delayed != "" })
	if r.settled > stamp {
		t.Errorf("settled moved to %s, past %s", r.settled, stamp)
	}
	run(t, w, "COMMIT PREPARED 'forgotten'")
	r.settles(stamp)
	r.has(1)
}

func TestWhileALongTransactionIsOpenPollsReadOnlyWhatChangedAndMissNothing(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	r := s.readerOf(postgres.SourceConfig{Overlap: 100 * time.Millisecond})
	r.poll()

	long, short := s.writer(), s.writer()
	run(t, long, "BEGIN")
	run(t, long, put(2, "clock_timestamp()"))
	s.exec(put(3, "clock_timestamp()")) // visible, and held from settling
	run(t, short, "BEGIN")
	run(t, short, put(4, "clock_timestamp()"))
	stamp := s.instant("SELECT clock_timestamp()")
	r.until("holding", func(d poller.Done) bool { return d.Delayed != "" })
	if r.poll(); r.met() != 0 {
		t.Errorf("%d rows are read though none has changed", r.met())
	}
	if r.settled > stamp {
		t.Errorf("settled moved to %s, past %s", r.settled, stamp)
	}
	run(t, short, "COMMIT")
	r.poll()
	r.has(4) // though it is stamped before what was read
	s.exec(put(5, "clock_timestamp()"))
	if r.poll(); r.met() != 1 {
		t.Errorf("%d rows are read, one has changed", r.met())
	}
	r.has(5)
	if !r.done.Complete || r.done.Delayed == "" {
		t.Errorf("done says %+v", r.done)
	}
	run(t, long, "COMMIT")
	r.poll()
	r.has(2)
	r.settles(stamp)
	r.until("the end of holding", func(d poller.Done) bool { return d.Delayed == "" })
	r.sameAs(s)
}

// The server's filter by row age must let a row through that VACUUM FREEZE has frozen in between.
func TestARowFrozenBeforeItIsReadIsStillFound(t *testing.T) {
	s := openShop(t, ordersTable)
	r := s.readerOf(postgres.SourceConfig{Overlap: 50 * time.Millisecond})
	r.poll()
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(1, "clock_timestamp()"))
	r.poll()
	run(t, w, "COMMIT")
	s.exec("VACUUM FREEZE orders")
	if r.floor == nil {
		t.Error("no floor: the test shows nothing")
	}
	r.poll()
	r.has(1)
}

// `run --once` makes one pass. If it were never to settle, each run would read the whole table again, and the
// memory for what was published would fill.
func TestAnOwnerThatMakesOnePassUnderTrafficSettles(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 3000))
	short := postgres.SourceConfig{MaxRows: 500, Overlap: time.Millisecond}
	r := s.readerOf(short)
	writers := []*pgx.Conn{s.writer(), s.writer()}
	run(t, writers[0], "BEGIN; SELECT pg_current_xact_id()")
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() { // one of them is open at any time
		defer close(ended)
		for i := 1; wait.For(ctx, 50*time.Millisecond) == nil; i++ {
			_, _ = writers[i%2].Exec(t.Context(), "BEGIN; SELECT pg_current_xact_id()")
			_, _ = writers[(i+1)%2].Exec(t.Context(), "COMMIT")
		}
	}()
	for range 3 {
		stamp := s.instant("SELECT clock_timestamp()")
		r.source = s.readerOf(short).source
		if r.poll(); r.settled < stamp.Add(-time.Second) {
			t.Errorf("settled stands at %s after a pass at %s", r.settled, stamp)
		}
	}
	stop()
	<-ended
	r.sameAs(s)
}

// The time of connecting is no part of the time that an owner waits for open transactions.
func TestAnOwnerThatConnectsSlowlyWaitsForOpenTransactionsAllTheSame(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 minute'"))
	g := openGate(t, server.Port)
	defer g.cut()
	connected := make(chan struct{}, 10)
	g.watch(func() func([]byte) {
		_ = wait.For(t.Context(), 2500*time.Millisecond)
		connected <- struct{}{}
		return func([]byte) {}
	})
	w := s.writer()
	run(t, w, "BEGIN; SELECT pg_current_xact_id()")
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		<-connected
		_ = wait.For(t.Context(), 100*time.Millisecond) // the owner's first look has seen the transaction by then
		_, _ = w.Exec(t.Context(), "COMMIT")
	}()
	defer func() { <-committed }()
	r := openReader(t, g.dsn(s.name), shortOverlap)
	if r.poll(); r.settled == schemas.MinInstant {
		t.Error("nothing is settled")
	}
}

// The first part of the pass is read while a transaction is open, the rest after a crash, when it is over.
// The cursor carries what the first part was read under, or the rest would settle the whole.
func TestAPassResumedAfterACrashDoesNotSettleWhatItsFirstPartCouldNotSee(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	c := postgres.SourceConfig{MaxRows: 100, Overlap: time.Millisecond}
	r := s.readerOf(c)
	r.poll()
	late := s.writer()
	run(t, late, "BEGIN")
	run(t, late, put(1001, "clock_timestamp()"))
	s.exec(`INSERT INTO orders SELECT i, 1, 'Complete', 1, clock_timestamp(), clock_timestamp()
		FROM generate_series(2, 600) i`)
	n := 0
	r.before = func(poller.Batch) error {
		if n++; n == 4 {
			return errCrash
		}
		return nil
	}
	if err := r.read(poller.Request{Kind: poller.Pass}); !errors.Is(err, errCrash) || r.cursor == nil {
		t.Fatalf("read: %v, cursor %v", err, r.cursor)
	}
	run(t, late, "COMMIT")
	r.before = nil
	r.source = s.readerOf(c).source
	r.poll()
	r.poll()
	r.sameAs(s)
}

// A pass that cannot end, because its rows fill poll.memory, settles once the transaction is over that held
// it: so there is room again. The rest alone would not settle it, for ever.
func TestAPassThatCannotEndSettlesOnceTheTransactionIsOver(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100, Overlap: time.Millisecond})
	r.poll()
	late := s.writer()
	run(t, late, "BEGIN")
	run(t, late, put(1001, "clock_timestamp()"))
	s.exec(`INSERT INTO orders SELECT i, 1, 'Complete', 1, clock_timestamp(), clock_timestamp()
		FROM generate_series(2, 600) i`)
	const room = 250
	r.before = func(b poller.Batch) error {
		remembered := len(b.Rows)
		for id, row := range r.rows {
			again := slices.ContainsFunc(b.Rows, func(n schemas.Record) bool { return n.ID == id })
			if row.UpdatedAt >= r.settled && !again {
				remembered++
			}
		}
		if remembered > room {
			return errCrash
		}
		return nil
	}
	for range 3 {
		if err := r.read(poller.Request{Kind: poller.Pass}); !errors.Is(err, errCrash) {
			t.Fatalf("read: %v", err)
		}
	}
	run(t, late, "COMMIT")
	for tries := 0; r.read(poller.Request{Kind: poller.Pass}) != nil; tries++ {
		if tries == 20 {
			t.Fatalf("no pass ends; settled stands at %s, the cursor is %+v", r.settled, r.cursor)
		}
	}
	r.sameAs(s)
}

// One statement may give a whole table the same updated_at. Settled stands at it until the last of these rows
// was read, so all but the first must be final, or as many rows would have to be remembered.
func TestRowsOfOneInstantAreFinalAsTheyAreRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100, Overlap: time.Millisecond})
	r.poll()
	s.exec(`INSERT INTO orders SELECT i, 1, 'Complete', 1, now(), now() FROM generate_series(2, 1000) i`)
	toRemember := 0
	r.before = func(b poller.Batch) error {
		for i := range b.Rows {
			if b.Final == nil || !b.Final[i] {
				toRemember++
			}
		}
		return nil
	}
	r.poll()
	r.sameAs(s)
	if toRemember > 200 {
		t.Errorf("%d of 999 rows of one instant are to be remembered", toRemember)
	}
}
