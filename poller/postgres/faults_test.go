package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// Rows take some milliseconds each, and nothing says beforehand which size a chunk may have.
func TestATableTooBigForOneStatementIsReadInSmallerOnes(t *testing.T) {
	for _, limit := range []string{"statement_timeout", "transaction_timeout"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			readInSmallerOnes(t, limit)
		})
	}
}

// It asks for no rows, so fewer rows are no help, and no index is missing.
func TestACatalogueQueryThatTheServerCancelsIsNoReadOfRows(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET statement_timeout = '1ms'", role, s.name))
	r := s.direct(postgres.SourceConfig{})
	err := r.read(poller.Request{})
	if err == nil || !strings.Contains(err.Error(), "57014") || strings.Contains(err.Error(), "index") ||
		r.timeouts() > 0 {
		t.Errorf("%v, and %v timeouts of reads", err, r.timeouts())
	}
}

func readInSmallerOnes(t *testing.T, limit string) {
	t.Helper()
	s := openShop(t, `CREATE TABLE slow (id bigint PRIMARY KEY, created_at timestamptz, updated_at timestamptz);
		CREATE INDEX ON slow (updated_at, id);
		CREATE FUNCTION wait(id bigint) RETURNS bigint LANGUAGE plpgsql STABLE
			AS 'BEGIN PERFORM pg_sleep(0.001); RETURN id; END';
		CREATE VIEW orders AS SELECT id, wait(id) AS user_id, 'Complete' AS status, 1.5 AS total_amount,
			created_at, updated_at FROM slow`)
	s.exec(`INSERT INTO slow SELECT i, now(), now() - interval '1 day' + i * interval '1 ms'
		FROM generate_series(1, 600) i`)
	if !query[bool](s, fmt.Sprintf("SELECT EXISTS (SELECT FROM pg_settings WHERE name = '%s')", limit)) {
		t.Skip("PostgreSQL has this setting from 17 on: make test-versions")
	}
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s = '700ms'", role, s.name, limit))
	var sent rowsSent
	g := openGate(t, server.Port)
	g.watch(sent.follow)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{MaxRows: 400})
	r.poll()
	r.sameAs(s)
	if n := sent.n.Load(); n > 660 {
		t.Errorf("the server sent %d rows for 600: those before a timeout were read twice", n)
	}
	if n := r.timeouts(); n == 0 {
		t.Error("no statement was cancelled: the test shows nothing")
	}
}

// The rows that came before the server cancelled a statement show that they are wide: the next statement asks
// for a few.
func TestATableOfWideRowsTooBigForOneStatementIsRead(t *testing.T) {
	t.Parallel()
	s := openShop(t, `CREATE TABLE slow (id bigint PRIMARY KEY, created_at timestamptz, updated_at timestamptz);
		CREATE INDEX ON slow (updated_at, id);
		CREATE FUNCTION wait(id bigint) RETURNS bigint LANGUAGE plpgsql STABLE
			AS 'BEGIN PERFORM pg_sleep(0.002); RETURN id; END';
		CREATE VIEW orders AS SELECT id, wait(id) AS user_id, repeat('x', 20000) AS status,
			1.5 AS total_amount, created_at, updated_at FROM slow`)
	s.exec(`INSERT INTO slow SELECT i, now(), now() - interval '1 day' + i * interval '1 ms'
		FROM generate_series(1, 600) i`)
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET statement_timeout = '700ms'", role, s.name))
	r := s.reader()
	for _, kind := range []poller.Kind{poller.Full, poller.Pass} {
		clear(r.rows)
		if err := r.read(poller.Request{Kind: kind}); err != nil {
			t.Fatalf("a read of kind %v: %v", kind, err)
		}
		r.sameAs(s)
	}
	if n := r.timeouts(); n == 0 {
		t.Error("no statement was cancelled: the test shows nothing")
	}
}

// Without an index each chunk scans the whole table.
func TestATableWithoutAnIndexIsRead(t *testing.T) {
	s := openShop(t, strings.Split(ordersTable, ";")[0])
	s.exec("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
	s.exec(fmt.Sprintf(manyOrders, 5_000))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 500})
	r.poll()
	r.sameAs(s)
}

// A server that sorts a large table for each statement cancels the smallest read too.
func TestAReadThatIsCancelledHoweverSmallItIsAsksForTheIndex(t *testing.T) {
	t.Parallel()
	s := openShop(t, strings.ReplaceAll(ordersTable, "orders", "slow")+`;
		CREATE VIEW orders AS SELECT slow.* FROM slow, LATERAL (SELECT pg_sleep(1 + 0 * id)) AS x`)
	s.exec("INSERT INTO slow VALUES (1, 1, 'Complete', 1, now(), now())")
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET statement_timeout = '200ms'", role, s.name))
	err := s.readerOf(postgres.SourceConfig{MaxRows: 400}).read(poller.Request{})
	if err == nil || !strings.Contains(err.Error(), "only one row. Perhaps no index begins with") {
		t.Errorf("%v, expected a question for the index", err)
	}
}

func TestALoadGoesOnAfterTheDatabaseOrThePoolerWasRestarted(t *testing.T) {
	for name, restart := range map[string]func(context.Context) error{
		"the database": func(ctx context.Context) error { return server.Restart(ctx) },
		"the pooler":   func(ctx context.Context) error { return pooler.Restart(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 1000))
			r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
			n := 0
			r.before = func(poller.Batch) error {
				if n++; n == 3 {
					return restart(t.Context())
				}
				return nil
			}
			r.poll()
			s.admin = s.writer()
			r.sameAs(s)
		})
	}
}

// The other end of a connection goes away without a word.
func TestAHalfOpenConnectionIsFoundOutAndReplaced(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	g := openGate(t, server.Port)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
	r.poll()
	idle := time.NewTimer(1100 * time.Millisecond) // the pool pings a connection only after a second of rest
	g.hang()
	s.exec(put(2, "clock_timestamp()"))
	<-idle.C
	r.poll()
	r.has(2)
}

// A pooler in front of a primary and a standby that lags.
func TestAServerThatLagsBehindWhatWasReadIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(put(1, "clock_timestamp()"))
	standby := startStandby(t)
	replica := dialDSN(t, standby.AdminDSN("postgres"))
	g := openGate(t, server.Port)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
	caughtUp(t, s, replica)
	run(t, replica, "SELECT pg_wal_replay_pause()")
	t.Cleanup(func() { _, _ = replica.Exec(context.Background(), "SELECT pg_wal_replay_resume()") })
	s.exec(put(2, "clock_timestamp()"))
	r.poll()
	r.has(2)

	g.lead(standby.Port)
	if err := r.read(poller.Request{Kind: poller.Pass}); err == nil {
		t.Errorf("a standby that lags was believed: %d batches", len(r.batches))
	} else if !strings.Contains(err.Error(), "not equally up to date") {
		t.Errorf("read from a standby that lags: %v", err)
	}
	run(t, replica, "SELECT pg_wal_replay_resume()")
	s.exec(put(3, "clock_timestamp()"))
	caughtUp(t, s, replica)
	r.poll()
	r.has(3)
}

// A sweep looks twice at what differs. A standby that stands still shows an older state both times, however
// far apart the looks are, and the newer one was published.
func TestAComparisonDoesNotBelieveAServerThatLagsBehindWhatPollsRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "clock_timestamp()"))
	standby := startStandby(t)
	replica := dialDSN(t, standby.AdminDSN("postgres"))
	g := openGate(t, server.Port)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
	caughtUp(t, s, replica)
	run(t, replica, "SELECT pg_wal_replay_pause()")
	t.Cleanup(func() { _, _ = replica.Exec(context.Background(), "SELECT pg_wal_replay_resume()") })
	s.exec(put(2, "clock_timestamp()"))
	r.poll()
	r.has(2)

	beside := r.source.Beside()
	g.lead(standby.Port)
	for _, q := range []poller.Request{{Kind: poller.Full},
		{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 1}, {ID: 2}}}} {
		shown := 0
		err := each(beside.Read(t.Context(), q), func(b poller.Batch) error {
			shown += len(b.Rows)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "not equally up to date") {
			t.Errorf("a read of kind %d believes a standby that lags: %d rows, error %v", q.Kind, shown, err)
		}
	}
}

// A row that moves ahead of the key between two chunks would be in neither.
func TestAServerThatLagsInTheMiddleOfAPassIsNotBelieved(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 500))
	standby := startStandby(t)
	replica := dialDSN(t, standby.AdminDSN("postgres"))
	caughtUp(t, s, replica)
	run(t, replica, "SELECT pg_wal_replay_pause()")
	t.Cleanup(func() { _, _ = replica.Exec(context.Background(), "SELECT pg_wal_replay_resume()") })
	s.exec(put(501, "clock_timestamp()"))
	g := openGate(t, server.Port)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{MaxRows: 100})
	n := 0
	r.before = func(poller.Batch) error {
		if n++; n == 2 {
			g.lead(standby.Port)
		}
		return nil
	}
	err := r.read(poller.Request{Kind: poller.Pass})
	if err == nil || !strings.Contains(err.Error(), "not equally up to date") || n != 2 {
		t.Errorf("after %d batches: %v", n, err)
	}
	run(t, replica, "SELECT pg_wal_replay_resume()")
	caughtUp(t, s, replica)
	r.poll()
	r.sameAs(s)
}

// A restore, or another cluster behind the same name: ids go back, and what was known of them means nothing.
func TestADatabaseThatWasReplacedIsReadAgainFromSettledOn(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec("DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
	s.exec(put(1, "now()"))
	other := servers.PostgresForTest(t, servers.PostgresConfig{})
	admin := dialDSN(t, other.AdminDSN("postgres"))
	run(t, admin, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password))
	run(t, admin, "CREATE DATABASE "+s.name)
	there := dialDSN(t, other.AdminDSN(s.name))
	run(t, there, ordersTable+"; GRANT SELECT ON orders TO "+role)
	run(t, there, put(2, "now()"))

	g := openGate(t, server.Port)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
	r.poll()
	g.lead(other.Port)
	r.poll()
	r.has(2)
}

// Settled on a standby goes by what it has replayed.
func TestOnAStandbyALateCommitOfThePrimaryIsRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "clock_timestamp()"))
	standby := startStandby(t)
	replica := dialDSN(t, standby.AdminDSN("postgres"))
	caughtUp(t, s, replica)
	r := openReader(t, standby.DSN(role, password, s.name), shortOverlap)
	s.exec(put(2, "clock_timestamp()"))
	caughtUp(t, s, replica)
	r.poll()
	late := s.writer()
	run(t, late, "BEGIN")
	run(t, late, put(3, "clock_timestamp()"))
	stamp := s.instant("SELECT clock_timestamp()")
	for s.instant("SELECT clock_timestamp()") < stamp.Add(400*time.Millisecond) {
		s.exec(put(4, "clock_timestamp()"))
		r.poll()
	}
	if r.settled > stamp {
		t.Errorf("settled moved to %s, past the stamp %s of an open transaction", r.settled, stamp)
	}
	run(t, late, "COMMIT")
	s.exec(put(5, "clock_timestamp()"))
	caughtUp(t, s, replica)
	r.until("order 3", func(poller.Done) bool { _, ok := r.rows[3]; return ok })
	s.exec(put(6, "clock_timestamp()"))
	caughtUp(t, s, replica)
	r.poll()
	r.settles(stamp)
	r.sameAs(s)
}

func TestWhatOnlyAPersonCanFixHoldsAndSaysWhatToDo(t *testing.T) {
	s := openShop(t, ordersTable)
	direct := func(password, database string) string { return server.DSN(role, password, database) }
	pooled := func(password, more string) string { return pooler.DSN(role, password, s.name) + more }
	retype := func(to string) string { return "ALTER TABLE orders ALTER updated_at TYPE " + to }
	cases := []struct{ name, dsn, change, back, want string }{
		{"wrong password", direct("wr0ng", s.name), "", "", "check user and password in"},
		{"wrong password at the pooler", pooled("wr0ng", ""), "", "", "refuses the connection: SASL"},
		{"no such database", direct(password, "nowhere"), "", "", `no database "nowhere"`},
		{"a startup parameter", pooled(password, "&statement_timeout=5"), "", "",
			"connection: unsupported startup parameter: statement_timeout (SQLSTATE 08P01). If that names"},
		{"no privilege", pooled(password, ""),
			"REVOKE SELECT ON orders FROM " + role, "GRANT SELECT ON orders TO " + role, "GRANT SELECT ON orders"},
		{"no table", pooled(password, ""),
			"ALTER TABLE orders RENAME TO o", "ALTER TABLE o RENAME TO orders", "no table orders"},
		{"a date", pooled(password, ""), retype("date"), retype("timestamptz"), "updated_at is date"},
		{"a text", pooled(password, ""),
			retype("text"), retype("timestamptz USING updated_at::timestamptz"), "updated_at is text"},
		{"no created_at", pooled(password, ""), "ALTER TABLE orders RENAME created_at TO made",
			"ALTER TABLE orders RENAME made TO created_at", "created_at is missing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := openReader(t, c.dsn, postgres.SourceConfig{})
			if c.change != "" {
				r.poll()
				s.exec(c.change)
			}
			err := r.read(poller.Request{})
			var blocked *poller.BlockedError
			if !errors.As(err, &blocked) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read: %v\nexpected a BlockedError with %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "wr0ng")) {
				t.Errorf("the error holds the password: %v", err)
			}
			if c.back != "" {
				s.exec(c.back)
				r.poll()
			}
		})
	}
}

func TestADSNThatDoesNotParseIsRefusedWithoutItsPassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://me:p4ss/word@host:port/db",
		"postgres://me:p4ss#word@host/db",
		"host=h password=p4ss'word port=x",
		"postgres://me:p4ss@h:99999999/d",
	} {
		_, err := postgres.Open(rotation.Literal(dsn), nil)
		if err == nil || strings.Contains(err.Error(), "p4ss") || strings.Contains(err.Error(), "word@") {
			t.Errorf("open %s: %v", dsn, err)
		}
	}
}

func TestADatabaseThatIsDownIsNoErrorUntilItIsReadAndThenOneToTryAgain(t *testing.T) {
	t.Parallel()
	l, err := servers.Listen()
	if err != nil {
		t.Fatal(err)
	}
	dsn := fmt.Sprintf("postgres://me:s3cret@%s/shop?sslmode=disable", l.Addr())
	l.Close()
	r := openReader(t, dsn, postgres.SourceConfig{})
	err = r.read(poller.Request{Kind: poller.Pass})
	var blocked *poller.BlockedError
	if err == nil || errors.As(err, &blocked) || !strings.Contains(err.Error(), "is the database up") {
		t.Errorf("read: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error holds the password: %v", err)
	}
}

// A statement may wait for a lock, or in a pooler whose database is down. It fails after a minute. Until then
// the page says that it waits.
func TestADatabaseThatDoesNotAnswerShowsBeforeItIsAnError(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	doing := make(chan string, 100)
	g := openGate(t, server.Port)
	defer g.cut() // or closing the reader would wait for an answer to its farewell
	c := postgres.SourceConfig{Doing: func(what string) { doing <- what }}
	r := openReader(t, g.dsn(s.name), c)
	r.poll()
	for len(doing) > 0 {
		<-doing
	}
	g.open.Lock()
	answered := make(chan error, 1)
	go func() { answered <- r.read(poller.Request{Kind: poller.Pass}) }()
	select {
	case what := <-doing:
		if what != postgres.Unanswered {
			t.Errorf("it says that it is %q", what)
		}
	case err := <-answered:
		t.Errorf("answered (%v) while nothing comes through", err)
	}
	g.open.Unlock()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	last := ""
	for len(doing) > 0 {
		last = <-doing
	}
	if last != "" {
		t.Errorf("after the answer it says that it is %q", last)
	}
}
