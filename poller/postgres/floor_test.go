package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// longOverlap is for tests in which settled stays behind: what is left out is left out by the floor.
var longOverlap = postgres.SourceConfig{Overlap: time.Hour}

func TestAPollReadsWhatChangedAndNotItsOverlap(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(`INSERT INTO orders SELECT i, 1, 'Complete', 1, now(), now() FROM generate_series(1, 500) i`)
	r := s.readerOf(longOverlap)
	r.poll()
	s.exec(put(7, "clock_timestamp()"))
	for _, want := range []int{1, 0} {
		if r.poll(); r.met() != want {
			t.Errorf("%d rows were read, %d have changed", r.met(), want)
		}
	}
	// A successor goes on with the floor, and an old stamp is no reason to miss a change.
	r.source = s.readerOf(longOverlap).source
	s.exec(put(8, "now() - interval '30 minutes'"))
	if r.poll(); r.met() != 1 {
		t.Errorf("a successor read %d rows, one has changed", r.met())
	}
	r.sameAs(s)
}

// No list of running transactions has the ids of savepoints.
func TestARowOfASavepointIsRead(t *testing.T) {
	s := openShop(t, ordersTable)
	r := s.readerOf(longOverlap)
	r.poll()
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(1, "now()"))
	run(t, w, "SAVEPOINT a")
	run(t, w, put(2, "now()"))
	s.exec(put(3, "now()"))
	r.poll()
	run(t, w, "SAVEPOINT b")
	run(t, w, put(4, "now()"))
	r.poll()
	run(t, w, "COMMIT")
	r.poll()
	r.sameAs(s)
}

// Rows appear that no transaction has written since the floor.
func TestRowsThatAppearWithoutBeingWrittenAreRead(t *testing.T) {
	const other = "CREATE TABLE other (LIKE orders INCLUDING ALL); GRANT SELECT ON other TO " + role +
		"; INSERT INTO other VALUES (9, 1, 'Complete', 1, now(), now())"
	for name, change := range map[string][2]string{
		"another table takes its name": {other,
			"ALTER TABLE orders RENAME TO old; ALTER TABLE other RENAME TO orders"},
		"a child is attached": {other, "ALTER TABLE other INHERIT orders"},
		"a partition is attached": {other + "; DROP TABLE orders; CREATE TABLE orders (LIKE other) " +
			"PARTITION BY RANGE (id); GRANT SELECT ON orders TO " + role,
			"ALTER TABLE orders ATTACH PARTITION other FOR VALUES FROM (9) TO (99)"},
		"row security no longer hides them": {"ALTER TABLE orders ENABLE ROW LEVEL SECURITY; " +
			"CREATE POLICY few ON orders USING (id < 9); " +
			"INSERT INTO orders VALUES (9, 1, 'Complete', 1, now(), now())",
			"ALTER TABLE orders DISABLE ROW LEVEL SECURITY"},
		"the view shows more": {"ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT * FROM base " +
			"WHERE id < 9; GRANT SELECT ON orders TO " + role + "; " +
			"INSERT INTO base VALUES (9, 1, 'Complete', 1, now(), now())",
			"CREATE OR REPLACE VIEW orders AS SELECT * FROM base"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(put(1, "now()"))
			s.exec(change[0])
			r := s.readerOf(longOverlap)
			r.poll()
			r.poll()
			s.exec(change[1])
			r.poll()
			r.has(9)
		})
	}
}

// The pass has a filter, and the catalogue says that there are no children.
func TestRowsOfAChildThatIsAttachedWhileAPassReadsAreRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec("CREATE TABLE other (LIKE orders INCLUDING ALL); GRANT SELECT ON other TO " + role +
		"; INSERT INTO other SELECT i, 1, 'Complete', 1, now(), now() FROM generate_series(1001, 1600) i")
	c := longOverlap
	c.MaxRows = 100
	r := s.readerOf(c)
	r.poll()
	s.exec("INSERT INTO orders SELECT i, 1, 'Complete', 1, now(), now() FROM generate_series(1, 600) i")
	n := 0
	r.before = func(poller.Batch) error {
		if n++; n == 3 {
			s.exec("ALTER TABLE other INHERIT orders")
		}
		return nil
	}
	r.poll()
	r.before = nil
	r.poll()
	r.sameAs(s)
}

func TestWithoutAFloorEverythingFromSettledOnIsRead(t *testing.T) {
	for name, ddl := range map[string]string{
		"a view": ordersView,
		"partitions": "DROP TABLE orders; CREATE TABLE orders (id bigint, user_id bigint, status text, " +
			"total_amount numeric(12,2), created_at timestamptz, updated_at timestamptz) PARTITION BY HASH (id); " +
			"CREATE TABLE part PARTITION OF orders FOR VALUES WITH (MODULUS 1, REMAINDER 0); " +
			"GRANT SELECT ON orders TO " + role,
		"a grant on columns": "REVOKE SELECT ON orders FROM " + role + "; GRANT SELECT (id, user_id, status, " +
			"total_amount, created_at, updated_at) ON orders TO " + role,
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(ddl)
			s.exec("INSERT INTO orders VALUES (1, 1, 'Complete', 1, now(), now())")
			r := s.readerOf(longOverlap)
			r.poll()
			s.exec("INSERT INTO orders VALUES (2, 1, 'Complete', 1, now(), now())")
			r.poll()
			if r.poll(); r.met() != 2 || r.floor != nil {
				t.Errorf("%d rows were read, floor %v: expected both, and no floor", r.met(), r.floor)
			}
			r.sameAs(s)
		})
	}
}

// The first load beside a writer that stays open says which rows are final.
func TestALoadBesideAnOpenTransactionSaysWhatIsFinal(t *testing.T) {
	s := openShop(t, ordersTable)
	r := s.readerOf(longOverlap)
	r.poll()
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(1, "now()"))
	r.until("holding settled", func(poller.Done) bool {
		s.exec(put(2, "clock_timestamp()"))
		r.poll()
		return len(r.batches) > 0 && r.batches[0].Final != nil
	})
	for i, row := range r.batches[0].Rows {
		if r.batches[0].Final[i] {
			t.Errorf("order %d was written after the open transaction began, and is called final", row.ID)
		}
	}
	run(t, w, "COMMIT")
	r.poll()
	r.sameAs(s)
}

// A long transaction has ended: few rows pass the filter, and the server cancels the search for them. Here a
// lock makes it, so that no machine is too fast or too slow.
func TestASearchThatTakesTooLongGoesOnInSteps(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 120_000))
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET statement_timeout = '300ms'", role, s.name))
	r := s.direct(postgres.SourceConfig{Overlap: 48 * time.Hour})
	r.poll()
	s.exec(put(5, "(SELECT updated_at + interval '1 s' FROM orders WHERE id = 5)"))
	s.exec(put(119_999, "(SELECT updated_at FROM orders WHERE id = 119999)"))
	locked := s.writer()
	run(t, locked, "BEGIN; LOCK TABLE orders")
	before, ended := r.timeouts(), make(chan error, 1)
	go func() { ended <- r.read(poller.Request{Kind: poller.Pass}) }()
	for end := time.Now().Add(time.Minute); r.timeouts() < before+6; {
		if query[int](s, "SELECT 1"); time.Now().After(end) {
			t.Fatal("no statement is cancelled")
		}
	}
	run(t, locked, "COMMIT")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if r.met() != 2 || r.lost > 0 || len(r.batches) < 3 {
		t.Errorf("%d rows were read in %d steps, two have changed; %d floors lost", r.met(), len(r.batches), r.lost)
	}
	r.sameAs(s)
}

// Earlier cancels, or wide rows, leave nothing to halve. The filter may be the cause all the same.
func TestASearchThatTakesTooLongGoesOnHoweverFewRowsItAsksFor(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 250))
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET statement_timeout = '1s'", role, s.name))
	r := s.direct(postgres.SourceConfig{Overlap: 48 * time.Hour, MaxRows: 100})
	r.poll()
	s.exec(put(249, "(SELECT updated_at FROM orders WHERE id = 249)"))
	locked := s.writer()
	run(t, locked, "BEGIN; LOCK TABLE orders")
	before, ended := r.timeouts(), make(chan error, 1)
	go func() { ended <- r.read(poller.Request{Kind: poller.Pass}) }()
	for end := time.Now().Add(time.Minute); r.timeouts() == before; {
		if query[int](s, "SELECT 1"); time.Now().After(end) {
			t.Fatal("no statement is cancelled")
		}
	}
	run(t, locked, "COMMIT")
	if err := <-ended; err != nil || r.met() != 1 {
		t.Errorf("%d rows were read, one has changed: %v", r.met(), err)
	}
	r.sameAs(s)
}

// Within a life the lineage sees to it. A new owner has none, and would publish rows as they were before.
func TestASuccessorWaitsForAStandbyThatLacksWhatWasSettled(t *testing.T) {
	for name, ddl := range map[string]string{"a table": "SELECT 1", "a view": ordersView} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(put(1, "now()") + ";" + ddl)
			replica := dialDSN(t, startStandby(t).AdminDSN("postgres"))
			caughtUp(t, s, replica)
			run(t, replica, "SELECT pg_wal_replay_pause()")
			t.Cleanup(func() { _, _ = replica.Exec(context.Background(), "SELECT pg_wal_replay_resume()") })
			r := s.readerOf(longOverlap)
			for range 5 {
				s.exec(put(1, "clock_timestamp()"))
			}
			r.poll()
			r.poll()
			r.source = openReader(t, startStandby(t).DSN(role, password, s.name), longOverlap).source
			err := r.read(poller.Request{})
			if err == nil || !strings.Contains(err.Error(), "shows less than the one that answered before") {
				t.Errorf("read: %v", err)
			}
			run(t, replica, "SELECT pg_wal_replay_resume()")
			caughtUp(t, s, replica)
			r.poll()
			if r.sameAs(s); r.lost > 0 {
				t.Errorf("%d floors were lost", r.lost)
			}
		})
	}
}

// A standby is promoted that lacks the last transactions. It gives out their ids again, to rows that lie
// below the floor; and what was read of them is gone, which only a sweep finds.
func TestAPromotedStandbyThatLacksTheLastCommitsIsReadAgainAndSwept(t *testing.T) {
	for name, c := range map[string]struct {
		ddl       string
		midway    bool
		successor bool
	}{
		"a table":                  {},
		"by another owner":         {successor: true},
		"a view":                   {ddl: ordersView},
		"in the middle of a pass":  {midway: true},
		"of a view, in the middle": {ddl: ordersView, midway: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(put(1, "now()") + ";" + c.ddl)
			standby := servers.StandbyForTest(t, server)
			replica := dialDSN(t, standby.AdminDSN("postgres"))
			caughtUp(t, s, replica)
			run(t, replica, "ALTER SYSTEM SET primary_conninfo = ''")
			run(t, replica, "SELECT pg_reload_conf()")
			g := openGate(t, server.Port)
			defer g.cut()
			few := longOverlap
			few.MaxRows = 2
			r := openReader(t, g.dsn(s.name), few)
			for i := range 5 {
				s.exec(put(10+i, "now()")) // these are lost
			}
			r.poll()
			r.poll()
			promote := func() {
				run(t, replica, "SELECT pg_promote()")
				now := dialDSN(t, standby.AdminDSN(s.name))
				for i := range 20 {
					run(t, now, put(20+i, "now()"))
				}
				g.lead(standby.Port)
			}
			if c.midway {
				s.exec("UPDATE orders SET status = 'Complete'")
				n := 0
				r.before = func(poller.Batch) error {
					if n++; n == 2 {
						promote()
					}
					return nil
				}
			} else {
				promote()
			}
			if c.successor {
				r.source = openReader(t, g.dsn(s.name), few).source
			}
			r.poll()
			r.before = nil
			r.poll()
			if r.has(20, 21, 22, 23, 24, 39); r.lost != 1 || !r.why.Sweep || !strings.Contains(r.why.Why, "timeline") {
				t.Errorf("lost %d times, %+v, expected once because of the timeline, and a sweep", r.lost, r.why)
			}
			// The old primary still answers, and its ids and its clock are no less than those of the new one.
			for range 60 {
				s.exec(put(1, "now()"))
			}
			g.lead(server.Port)
			if c.successor {
				r.source = openReader(t, g.dsn(s.name), few).source
			}
			err := r.read(poller.Request{})
			if err == nil || !strings.Contains(err.Error(), "shows less than the one that answered before") {
				t.Errorf("read from a primary that was replaced: %v", err)
			}
			g.lead(standby.Port)
			if r.poll(); r.lost != 1 {
				t.Errorf("lost %d times, %+v, expected once", r.lost, r.why)
			}
		})
	}
}

const ordersView = "ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT * FROM base; " +
	"GRANT SELECT ON orders TO " + role

// No transaction has written the rows, and all of them have another updated_at.
func TestRowsWithAnUpdatedAtThatWasMadeAnewAreReadAgain(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 20))
	r := s.readerOf(longOverlap)
	r.poll()
	s.exec("ALTER TABLE orders DROP updated_at; ALTER TABLE orders ADD updated_at timestamptz DEFAULT now()")
	r.poll()
	if r.sameAs(s); r.lost != 1 || !r.why.Sweep {
		t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
	}
}
