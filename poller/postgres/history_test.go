package postgres_test

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// What happens to a database as a whole. Each of these tests has a cluster of its own, and they run beside
// one another.

// skipTo makes id the one that is given out next. At most 2^31 ids may be between the next one and the oldest
// row that is not frozen. Where a page of the commit log begins (each 2^15 ids) it may end before.
func (s *shop) skipTo(id uint64) {
	s.t.Helper()
	s.exec("ALTER DATABASE template0 ALLOW_CONNECTIONS true")
	for _, name := range []string{"template0", "template1", "postgres", s.name} {
		run(s.t, dialDSN(s.t, s.server.AdminDSN(name)), "VACUUM FREEZE")
	}
	s.whileDown(func() error {
		err := s.server.ResetWAL("-x", strconv.FormatUint(id&(1<<32-1), 10), "-e", strconv.FormatUint(id>>32, 10))
		if errors.Is(err, servers.ErrNoResetWAL) {
			s.t.Skip(err)
		}
		return err
	})
}

func TestWhereIDsWrapNothingIsMissed(t *testing.T) {
	t.Parallel()
	const page = 1 << 15
	const billion = page * 30_518
	s := openShopAlone(t, nil)
	r := s.direct(longOverlap)
	s.exec(put(1, "now()"))
	r.poll()
	for i, at := range []struct {
		skip []uint64
		lost int
	}{
		{[]uint64{1<<31 - page}, 1}, // 2^31 behind, where the server's own age() would call a new row old
		{[]uint64{1<<31 + page}, 1},
		{[]uint64{1<<31 + billion - 2*page}, 1},
		{[]uint64{1<<32 - page}, 2},
		{[]uint64{1<<32 + page}, 2},
		{[]uint64{1<<32 + 1<<31 + 9*page}, 3},
		{[]uint64{1<<32 + 1<<31 + billion + 9*page, 1<<33 + page}, 4},
	} {
		for _, id := range at.skip {
			for next := query[uint64](s, nextID); ; {
				if next += 3 * billion / 2; next >= id {
					break
				}
				s.skipTo(next / page * page)
			}
			s.skipTo(id)
		}
		// As if the ids had passed without a restart, which would cost the floor by itself.
		r.identity.Started = s.instant("SELECT " + startedSQL)
		s.exec(put(1, "clock_timestamp()"))
		s.exec(put(10+i, "clock_timestamp()"))
		if r.poll(); r.lost != at.lost {
			t.Errorf("at %d the floor was lost %d times, expected %d", at.skip, r.lost, at.lost)
		}
		r.sameAs(s)
	}
}

func TestADatabaseThatWasPutBackIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		recovery, successor bool
		rows                int // that are written before the next poll
	}{
		"a copy of its files":               {rows: 3},
		"a copy of its files, and takeover": {rows: 3, successor: true},
		"a recovery to an earlier time":     {rows: 50, recovery: true},
		"a recovery, and takeover":          {rows: 50, recovery: true, successor: true},
	} {
		for _, of := range []string{"a table", "a view of a partitioned table"} {
			t.Run(name+", of "+of, func(t *testing.T) {
				t.Parallel()
				kind := relations[of]
				s := openShopAlone(t, nil)
				s.exec(kind.ddl)
				s.exec(kind.put(1, "now()"))
				var putBack func(bool) error
				s.whileDown(func() (err error) { putBack, err = s.server.Copy(); return err })
				r := s.direct(longOverlap)
				for i := range 10 {
					s.exec(kind.put(10+i, "now()")) // these are lost
				}
				r.poll()
				r.poll()
				s.whileDown(func() error { return putBack(c.recovery) })
				for i := range c.rows {
					s.exec(kind.put(100+i, "now()"))
				}
				if c.successor {
					r.source = s.direct(longOverlap).source
				}
				r.poll()
				for i := range c.rows {
					r.has(int64(100 + i))
				}
				if r.lost != 1 || !r.why.Sweep {
					t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
				}
			})
		}
	}
}

// A server that crashes gives out again the ids of transactions of which nothing was flushed: here of some
// that were rolled back, and that a poll has taken for over.
func TestIDsThatACrashGivesOutAgainAreNotTakenForMet(t *testing.T) {
	for name, crash := range map[string]func(*shop) error{
		"of the server": func(s *shop) error {
			if err := s.server.Kill(); err != nil {
				return err
			}
			return s.server.Start(s.t.Context())
		},
		"of one process": func(s *shop) error {
			return syscall.Kill(query[int](s, "SELECT pg_backend_pid()"), syscall.SIGKILL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopAlone(t, map[string]string{"wal_writer_delay": "10s"})
			r := s.direct(longOverlap)
			s.exec(put(1, "now()"))
			for range 50 {
				s.exec("BEGIN")
				s.exec(put(1, "now()"))
				s.exec("ROLLBACK")
			}
			r.poll()
			before, started := query[uint64](s, nextID), s.instant("SELECT "+startedSQL)
			if err := crash(s); err != nil {
				t.Fatal(err)
			}
			s.reconnect(fmt.Sprintf("SELECT %s > '%s'", startedSQL, started))
			if after := query[uint64](s, nextID); after >= before {
				t.Fatalf("the next id was %d and is %d: none is given out again", before, after)
			}
			for i := range 100 {
				s.exec(put(100+i, "now()"))
			}
			r.poll()
			if r.sameAs(s); r.lost != 1 || !r.why.Sweep {
				t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
			}
		})
	}
}

const (
	nextID     = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
	startedSQL = "greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())"
)

// A person resets them to look at them anew. No server has started.
func TestStatisticsThatAPersonResetsAreNoRestart(t *testing.T) {
	t.Parallel()
	s := openShopAlone(t, nil)
	s.exec(put(1, "now()"))
	r := s.direct(longOverlap)
	r.poll()
	for _, reset := range []string{"pg_stat_reset_shared('bgwriter')", "pg_stat_reset_shared('archiver')",
		"pg_stat_reset_shared('wal')", "pg_stat_reset_shared('io')", "pg_stat_reset()"} {
		if _, err := s.admin.Exec(t.Context(), "SELECT "+reset); err != nil {
			t.Log(err) // older versions lack some
		}
		if r.poll(); r.lost != 0 {
			t.Fatalf("after %s: lost %d times, %+v", reset, r.lost, r.why)
		}
	}
}

// A prepared transaction outlives the server, and its rows appear under an id from before.
func TestAPreparedTransactionThatOutlivesARestartIsRead(t *testing.T) {
	t.Parallel()
	s := openShopAlone(t, map[string]string{"max_prepared_transactions": "5"})
	r := s.direct(longOverlap)
	s.exec(put(1, "now()"))
	r.poll()
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(2, "now()"))
	run(t, w, "SAVEPOINT a")
	run(t, w, put(3, "now()"))
	run(t, w, "PREPARE TRANSACTION 'kept'")
	s.exec(put(4, "now()"))
	r.poll()
	s.whileDown(func() error { return nil })
	s.exec(put(5, "now()"))
	r.poll()
	s.exec("COMMIT PREPARED 'kept'")
	r.poll()
	if r.sameAs(s); r.lost != 1 || !r.why.Sweep {
		t.Errorf("a restart cost %d floors, %+v, expected one, and a sweep", r.lost, r.why)
	}
}

// On a subscriber the apply worker writes, under ids of its own, what was committed elsewhere. So from a
// stamp to its first write there it takes as long as the whole transaction, and the way.
func TestASubscriberOfLogicalReplicationIsReadWithAnOverlapAsLongAsTransactions(t *testing.T) {
	t.Parallel()
	from := openShopAlone(t, map[string]string{"wal_level": "logical"})
	from.exec("CREATE PUBLICATION everything FOR TABLE orders")
	from.exec(put(1, "now()"))
	s := openShopAlone(t, nil)
	s.exec(fmt.Sprintf("CREATE SUBSCRIPTION here CONNECTION '%s' PUBLICATION everything",
		from.server.AdminDSN(from.name)))
	applied := func(id int) {
		t.Helper()
		sql := fmt.Sprintf("SELECT EXISTS (SELECT FROM orders WHERE id = %d)", id)
		for end := time.Now().Add(time.Minute); !query[bool](s, sql); {
			if time.Now().After(end) {
				t.Fatalf("order %d does not come to the subscriber", id)
			}
		}
	}
	applied(1)
	r, short := s.direct(longOverlap), s.direct(postgres.SourceConfig{Overlap: time.Millisecond})
	r.poll()
	w := from.writer()
	run(t, w, "BEGIN")
	run(t, w, put(2, "now()"))
	stamp := from.instant("SELECT now()")
	for i := 3; i < 6; i++ {
		from.exec(put(i, "now()"))
		applied(i)
		if r.poll(); r.met() != 1 {
			t.Errorf("%d rows were read, one has changed", r.met())
		}
	}
	short.until("settled", func(poller.Done) bool { return short.settled > stamp })
	run(t, w, "COMMIT")
	applied(2)
	r.poll()
	r.sameAs(s)
	r.source = s.direct(longOverlap).source
	if r.poll(); r.met() != 0 {
		t.Errorf("a successor read %d rows, none has changed", r.met())
	}
}
