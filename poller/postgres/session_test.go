package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// twoOfOneConnection returns a DSN that leads to s through a pooler in transaction mode with one connection
// to the server, and a function that connects another client of the role to it.
func (s *shop) twoOfOneConnection() (dsn string, another func() *pgx.Conn) {
	s.t.Helper()
	narrow := servers.PgBouncerForTest(s.t, servers.PgBouncerConfig{Postgres: s.server, PoolSize: 1,
		Users: map[string]string{role: password}})
	dsn = narrow.DSN(role, password, s.name)
	return dsn, func() *pgx.Conn {
		s.t.Helper()
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			s.t.Fatal(err)
		}
		c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(s.t.Context(), c)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
}

// others makes a table of ten other orders in a schema of its own, which the role may read.
const others = `CREATE SCHEMA mine; CREATE TABLE mine.orders (LIKE public.orders INCLUDING ALL);
	INSERT INTO mine.orders SELECT i, 1, 'Other', 1, now(), now() FROM generate_series(1, 10) i;
	GRANT USAGE ON SCHEMA mine TO ` + role + `; GRANT SELECT ON mine.orders TO ` + role + `;`

// Whatever another client of the pooler has left in its session, the same rows are read, by every kind of
// read.
func TestWhatAnotherClientLeavesInItsSessionDecidesNothing(t *testing.T) {
	const temporary = "CREATE TEMP TABLE orders AS SELECT * FROM public.orders LIMIT 5"
	for name, c := range map[string]struct {
		ddl  string
		left []string
	}{
		"search_path": {others, []string{"SET search_path = mine, public"}},
		"search_path with functions of its own": {others + `CREATE FUNCTION mine.now() RETURNS timestamptz
			LANGUAGE sql AS 'SELECT timestamptz ''2001-01-01'''; CREATE FUNCTION mine.age(xid) RETURNS int
			LANGUAGE sql AS 'SELECT 2000000000'`, []string{"SET search_path = mine, pg_catalog, public"}},
		"no search_path":    {"SELECT 1", []string{"SET search_path = ''"}},
		"a temporary table": {"SELECT 1", []string{temporary}},
		"a temporary table, first in search_path": {"SELECT 1",
			[]string{temporary, "SET search_path = pg_temp, public"}},
		"a temporary view": {"SELECT 1", []string{"CREATE TEMP VIEW orders AS SELECT * FROM " +
			"public.orders LIMIT 5"}},
		"temporary tables for the catalogue": {"SELECT 1", []string{
			"CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class LIMIT 0",
			"CREATE TEMP TABLE pg_attribute AS SELECT attname FROM pg_catalog.pg_attribute LIMIT 0",
			"CREATE TEMP TABLE pg_inherits AS SELECT 'orders'::regclass::oid AS inhparent, 1::oid AS inhrelid"}},
		"temporary types": {"SELECT 1", []string{"CREATE TEMP TABLE text (a int)", "CREATE TEMP TABLE oid (a int)",
			"CREATE TEMP TABLE xid (a int)", "CREATE TEMP TABLE regclass (a int)"}},
		"a temporary table for a function of a view": {`CREATE TABLE few AS SELECT generate_series(1, 100) AS id;
			GRANT SELECT ON few TO ` + role + `; CREATE FUNCTION wanted(bigint) RETURNS boolean LANGUAGE plpgsql STABLE
			AS 'BEGIN RETURN EXISTS (SELECT FROM few WHERE id = $1); END'; ALTER TABLE orders RENAME TO base;
			CREATE VIEW orders AS SELECT * FROM base WHERE wanted(id)` + mayRead,
			[]string{"CREATE TEMP TABLE few AS SELECT 1 AS id"}},
		"role": {others + `CREATE SCHEMA other_%[1]s; CREATE ROLE other_%[1]s; GRANT other_%[1]s TO ` + role + `;
			ALTER TABLE mine.orders SET SCHEMA other_%[1]s; GRANT USAGE ON SCHEMA other_%[1]s TO other_%[1]s;
			GRANT SELECT ON other_%[1]s.orders TO other_%[1]s`, []string{"SET ROLE other_%[1]s"}},
		"row_security": {`ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY most ON orders
			USING (id <= 1000)`, []string{"SET row_security = off"}},
		"a setting that a policy asks for": {`ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
			CREATE POLICY ours ON orders USING (id <= current_setting('shop.most', true)::int);
			ALTER ROLE ` + role + ` IN DATABASE %[1]s SET shop.most = '1000'`,
			[]string{"SET shop.most = '3'"}},
		"statement_timeout": {`ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT * FROM base
			WHERE (SELECT pg_sleep(0.2))::text = ''` + mayRead, []string{"SET statement_timeout = '100ms'"}},
		"what a transaction is": {"SELECT 1", []string{"SET default_transaction_isolation = 'serializable'",
			"SET default_transaction_deferrable = on", "SET default_transaction_read_only = off"}},
		"how a query is planned": {"SELECT 1", []string{"SET enable_indexscan = off", "SET enable_sort = off",
			"SET constraint_exclusion = on", "SET transform_null_equals = on", "SET bytea_output = 'escape'"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 100))
			named := func(sql string) string { return strings.ReplaceAll(sql, "%[1]s", s.name) }
			s.exec(named(c.ddl))
			dsn, another := s.twoOfOneConnection()
			r := openReader(t, dsn, shortOverlap)
			r.poll()
			same := func(what string, rows int) {
				t.Helper()
				if len(r.rows) != rows || len(r.rejects) != 0 || r.lost != 0 {
					t.Errorf("%s: %d rows and %d rejects, lost %d times, expected %d rows", what, len(r.rows),
						len(r.rejects), r.lost, rows)
				}
				for id, row := range r.rows {
					if strings.Contains(string(row.Value), "Other") {
						t.Errorf("%s: order %d is of another table", what, id)
					}
				}
			}
			left := another()
			for _, one := range c.left {
				run(t, left, named(one))
			}
			before := sessionState(t, left)
			s.exec("UPDATE " + base(c.ddl) + " SET status = 'Shipped' WHERE id <= 50")
			for range 2 {
				r.poll()
				same("a pass", 100)
			}
			r.source = openReader(t, dsn, shortOverlap).source
			r.poll()
			same("a successor", 100)
			for _, q := range []poller.Request{{Kind: poller.Full, From: schemas.MinInstant},
				{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 7}, {ID: 70}}}} {
				clear(r.rows)
				if err := r.read(q); err != nil {
					t.Fatal(err)
				}
				same(fmt.Sprintf("kind %d", q.Kind), map[poller.Kind]int{poller.Full: 100, poller.Lookup: 2}[q.Kind])
			}
			db := examiner(t, dsn)
			found, err := postgres.CheckTable(t.Context(), db, orders)
			if err != nil || !strings.HasPrefix(found.Name, `"public".`) {
				t.Errorf("check: %+v, %v", found, err)
			}
			if after := sessionState(t, left); after != before {
				t.Errorf("the other client's session was %s and is %s", before, after)
			}
		})
	}
}

// base is the table that an UPDATE of orders may name after ddl.
func base(ddl string) string {
	if strings.Contains(ddl, "RENAME TO base") {
		return "base"
	}
	return "public.orders"
}

// sessionState is what the session of a client has set.
func sessionState(t *testing.T, conn *pgx.Conn) (state string) {
	t.Helper()
	const sql = `SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) || ' ' || current_user
		FROM pg_catalog.pg_settings WHERE source = 'session' AND name <> 'transaction_read_only'`
	if err := conn.QueryRow(t.Context(), sql).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// What the shop's owner sets for role and database is what decides, and what the DSN says before that.
func TestTheSearchPathOfTheRoleOrOfTheDSNDecides(t *testing.T) {
	for name, c := range map[string]struct {
		sql, parameter string
		want           int
	}{
		"the default": {"SELECT 1", "", 100},
		"the role's":  {"ALTER ROLE " + role + " IN DATABASE %s SET search_path = mine, public", "", 10},
		"the DSN's":   {"SELECT 1", "&search_path=mine", 10},
		"both": {"ALTER ROLE " + role + " IN DATABASE %s SET search_path = " +
			"mine", "&search_path=public,mine", 100},
		"an empty one": {"ALTER ROLE " + role + " IN DATABASE %s SET search_path = ''", "&search_path=public", 100},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 100))
			s.exec(others + strings.Replace(c.sql, "%s", s.name, 1))
			for way, dsn := range map[string]string{"direct": s.server.DSN(role, password, s.name),
				"pooled": pooler.DSN(role, password, s.name)} {
				r := openReader(t, dsn+c.parameter, shortOverlap)
				if r.poll(); len(r.rows) != c.want {
					t.Errorf("%s: %d rows, expected %d", way, len(r.rows), c.want)
				}
			}
		})
	}
}

func TestATemporaryTableIsNeverRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET search_path = pg_temp, public", role, s.name))
	dsn, another := s.twoOfOneConnection()
	run(t, another(), "CREATE TEMP TABLE orders AS SELECT * FROM public.orders")
	openReader(t, dsn, shortOverlap).isBlocked(poller.Request{}, "has no table orders")
}
