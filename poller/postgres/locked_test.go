package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// A transaction that was open during the pass before commits. Then the table is filled anew, which locks
// everybody out meanwhile: the next pass has begun and waits. Under a snapshot from before, the table is
// empty now, and settled would pass the row.
func TestAPassThatWaitedForATableToBeFilledAnewReadsWhatIsInItThen(t *testing.T) {
	const truncate = "CREATE TEMP TABLE kept AS TABLE orders; TRUNCATE %[1]s; INSERT INTO %[1]s TABLE kept"
	for name, c := range map[string]struct{ kind, fill string }{
		"truncated":                          {"a table", truncate},
		"truncated, below a view":            {"a view", truncate},
		"truncated, partitions":              {"a partitioned table", truncate},
		"truncated, partitions below a view": {"a view of a partitioned table", truncate},
		"swapped": {"a table", "CREATE TABLE next (LIKE orders INCLUDING ALL); INSERT INTO next TABLE orders; " +
			"DROP TABLE orders; ALTER TABLE next RENAME TO orders; GRANT SELECT ON orders TO " + role},
		"rewritten":               {"a table", "ALTER TABLE %[1]s ADD COLUMN note float DEFAULT random()"},
		"rewritten, below a view": {"a view", "ALTER TABLE %[1]s ADD COLUMN note float DEFAULT random()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, kind := openShop(t, ordersTable), relations[c.kind]
			s.exec(kind.ddl)
			s.exec(kind.put(1, "clock_timestamp()"))
			r := s.readerOf(postgres.SourceConfig{Overlap: time.Millisecond})
			r.poll()
			late, filler := s.writer(), s.writer()
			run(t, late, "BEGIN")
			run(t, late, kind.put(2, "clock_timestamp()"))
			r.poll()
			run(t, late, "COMMIT")
			run(t, filler, "BEGIN")
			run(t, filler, "LOCK TABLE "+kind.base+" IN ACCESS EXCLUSIVE MODE")
			read := make(chan error)
			go func() { read <- r.read(poller.Request{}) }()
			waiting := fmt.Sprintf("SELECT count(*) FROM pg_stat_activity "+
				"WHERE datname = '%s' AND wait_event_type = 'Lock'",
				s.name)
			for query[int64](s, waiting) == 0 {
				continue
			}
			run(t, filler, strings.ReplaceAll(c.fill, "%[1]s", kind.base))
			run(t, filler, "COMMIT")
			if err := <-read; err != nil {
				t.Error(err)
			}
			for range 2 {
				r.poll()
			}
			r.sameAs(s)
		})
	}
}

// A LOCK of a view asks for rights that a SELECT does not need.
func TestAViewThatTheRoleMayReadAndNotLockIsRead(t *testing.T) {
	const columns = "(id, user_id, status, total_amount, created_at, updated_at)"
	for name, view := range map[string]string{
		"its owner may read columns only": "CREATE ROLE owner_%[1]s; GRANT SELECT " + columns + " ON " +
			"base TO owner_%[1]s; " +
			"GRANT CREATE, USAGE ON SCHEMA public TO owner_%[1]s; SET ROLE owner_%[1]s; CREATE VIEW orders AS " +
			"SELECT id, user_id, status, total_amount, created_at, updated_at FROM base; RESET ROLE",
		"it reads with the rights of the role": "GRANT SELECT " + columns + " ON base TO " + role + "; " +
			"CREATE VIEW orders " +
			"WITH (security_invoker = true) AS SELECT id, user_id, status, total_amount, created_at, " +
			"updated_at FROM base",
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			if strings.Contains(view, "security_invoker") && query[int](s, "SELECT "+
				"current_setting('server_version_num')::int") < 150000 {
				t.Skip("PostgreSQL has this from 15 on")
			}
			s.exec("ALTER TABLE orders RENAME TO base; REVOKE ALL ON base FROM " + role)
			s.exec(strings.ReplaceAll(view, "%[1]s", s.name))
			s.exec("GRANT SELECT ON orders TO " + role + "; INSERT INTO base VALUES (1, 1, 'Complete', " +
				"1, now(), now())")
			r := s.reader()
			r.poll()
			r.sameAs(s)
		})
	}
}
