package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// No handler has to be there: the catalogue knows the table all the same.
const (
	orderColumns = `id bigint, user_id bigint, status text, total_amount numeric(12,2), created_at timestamptz,
		updated_at timestamptz`
	foreignServer = `CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER far FOREIGN DATA WRAPPER nothing;`
	foreignTable  = foreignServer + `CREATE FOREIGN TABLE far_orders (` + orderColumns + `) SERVER far;`
	toBase        = `ALTER TABLE orders RENAME TO base; REVOKE ALL ON base FROM ` + role + `;`
	mayRead       = `; GRANT SELECT ON orders TO ` + role
)

// The transactions of this server say nothing of when such rows appear.
func TestATableWhoseRowsComeFromElsewhereIsBlockedAndNamed(t *testing.T) {
	const foreign, materialized = "far_orders, a foreign table", "a materialized view"
	for name, c := range map[string]struct{ ddl, says string }{
		"a foreign table": {foreignServer + toBase + `
			CREATE FOREIGN TABLE orders (` + orderColumns + `) SERVER far`,
			"orders, a foreign table"},
		"a view over one": {foreignTable + toBase + `CREATE VIEW orders AS SELECT * FROM far_orders`, foreign},
		"a view over a view over a join with one": {foreignTable + toBase + `CREATE VIEW middle AS
			SELECT b.* FROM base b LEFT JOIN far_orders f USING (id);
			CREATE VIEW orders AS SELECT * FROM middle`, foreign},
		"a subquery of a view": {foreignTable + toBase + `CREATE VIEW orders AS
			WITH f AS (SELECT id FROM far_orders) SELECT * FROM base WHERE id NOT IN (SELECT id FROM f)`, foreign},
		"a partition": {foreignServer + toBase + `
			CREATE TABLE orders (` + orderColumns + `) PARTITION BY RANGE (id);
			CREATE TABLE part PARTITION OF orders FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);
			CREATE FOREIGN TABLE far_orders PARTITION OF part FOR VALUES FROM (0) TO (10) SERVER far`, foreign},
		"a child": {foreignServer + `
			CREATE FOREIGN TABLE far_orders () INHERITS (orders) SERVER far`, foreign},
		"a materialized view": {toBase + `CREATE MATERIALIZED VIEW orders AS SELECT * FROM base`, materialized},
		"a view over a materialized one": {toBase + `CREATE MATERIALIZED VIEW kept AS SELECT * FROM base;
			CREATE VIEW orders AS SELECT * FROM kept`, "kept, " + materialized},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			r := s.reader()
			r.poll()
			s.exec(c.ddl + mayRead)
			for _, q := range []poller.Request{{Kind: poller.Pass}, {Kind: poller.Full}, {Kind: poller.Pass}} {
				r.isBlocked(q, c.says)
			}
			_, err := postgres.CheckTable(t.Context(), examiner(t, pooler.DSN(role, password, s.name)), orders)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "source: rest") {
				t.Errorf("check says %v, expected %q", err, c.says)
			}
		})
	}
}

// A new session does not know the setting. One in which another client has set it has it empty for ever.
func TestATableThatGoesByASettingWithoutAValueIsBlockedAndNamed(t *testing.T) {
	const security = `ALTER TABLE %s ENABLE ROW LEVEL SECURITY; `
	tenant := func(setting string) string { return `coalesce(` + setting + ` = user_id::text, true)` }
	const setting = `current_setting('app.tenant', true)`
	const function = `CREATE FUNCTION tenant() RETURNS text LANGUAGE sql STABLE AS
		'SELECT pg_catalog.current_setting( ''app.tenant'', true)'; `
	for name, c := range map[string]struct {
		ddl   string
		reads bool
	}{
		"a view": {toBase + `CREATE VIEW orders AS SELECT * FROM base WHERE ` + tenant(setting), false},
		"a view below one": {toBase + `CREATE VIEW middle AS SELECT * FROM base WHERE ` + tenant(setting) + `;
			CREATE VIEW orders AS SELECT * FROM middle`, false},
		"a view's function": {toBase + function + `CREATE VIEW orders AS SELECT * FROM base WHERE ` +
			tenant("tenant()"), false},
		"a policy": {fmt.Sprintf(security, "orders") + `CREATE POLICY ours ON orders USING (` +
			tenant(setting) + `)`, false},
		"a policy's function": {function + fmt.Sprintf(security, "orders") + `CREATE POLICY ours ON orders
			USING (` + tenant("tenant()") + `)`, false},
		"a policy of the role below a view with its rights": {toBase + fmt.Sprintf(security, "base") + `
			CREATE POLICY ours ON base TO ` + role + ` USING (` + tenant(setting) + `); GRANT SELECT ON base TO ` +
			role + `; CREATE VIEW orders WITH (security_invoker) AS SELECT * FROM base`, false},
		"a policy of others": {fmt.Sprintf(security, "orders") + `CREATE POLICY theirs ON orders TO pg_monitor
			USING (` + tenant(setting) + `); CREATE POLICY ours ON orders TO ` + role + ` USING (true)`, true},
		"a policy that is switched off": {`CREATE POLICY ours ON orders USING (` + tenant(setting) + `)`, true},
		"a policy that the view's owner is above": {toBase + fmt.Sprintf(security, "base") +
			`CREATE POLICY ours ON base USING (` + tenant(setting) + `);
			CREATE VIEW orders AS SELECT * FROM base`, true},
		"a setting that the server has": {toBase + `CREATE VIEW orders AS SELECT * FROM base WHERE
			current_setting('TimeZone') <> ''`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			if strings.Contains(c.ddl, "security_invoker") && query[int](s, "SELECT "+
				"current_setting('server_version_num')::int") < 150000 {
				t.Skip("security_invoker came with PostgreSQL 15")
			}
			s.exec(fmt.Sprintf(manyOrders, 10) + "; UPDATE orders SET user_id = 1;" + c.ddl + mayRead)
			dsn, another := s.twoOfOneConnection()
			r := openReader(t, dsn, shortOverlap)
			ten := func() {
				t.Helper()
				clear(r.rows)
				if err := r.read(poller.Request{Kind: poller.Full, From: schemas.MinInstant}); err != nil {
					t.Error(err)
				}
				if r.poll(); len(r.rows) != 10 {
					t.Errorf("%d rows", len(r.rows))
				}
			}
			if !c.reads {
				r.isBlocked(poller.Request{}, "the setting app.tenant")
				run(t, another(), "SET app.tenant = '1'")
				for _, q := range []poller.Request{{Kind: poller.Pass}, {Kind: poller.Full}} {
					r.isBlocked(q, "ALTER ROLE")
				}
				s.exec(`ALTER ROLE ` + role + ` IN DATABASE ` + s.name + ` SET app.tenant = '1'`)
				dsn, another = s.twoOfOneConnection()
				r = openReader(t, dsn, shortOverlap)
			}
			ten()
			run(t, another(), "SET app.tenant = '77'")
			ten()
		})
	}
}

// ALTER POLICY changes which rows of the same table the role sees, with stamps of before: only a sweep meets
// them.
func TestAChangedPolicyAsksForASweep(t *testing.T) {
	for name, alter := range map[string]string{
		"the policy":   "ALTER POLICY ours ON orders USING (id > 0)",
		"its function": "CREATE OR REPLACE FUNCTION may(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 10))
			s.exec(`CREATE FUNCTION may(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT $1 > 5'; ALTER TABLE orders
				ENABLE ROW LEVEL SECURITY; CREATE POLICY ours ON orders USING (may(id))` + mayRead)
			r := s.reader()
			r.poll()
			if r.poll(); len(r.rows) != 5 || r.lost != 0 {
				t.Errorf("%d rows of five, lost %d times", len(r.rows), r.lost)
			}
			s.exec(alter)
			r.poll()
			if r.poll(); r.lost != 1 || !r.why.Sweep {
				t.Errorf("lost %d times, expected once, and a sweep: %+v", r.lost, r.why)
			}
		})
	}
}

// The name leads to the same relation as before, so the clock of a chunk does not show it.
func TestWhatATableLeadsToIsLookedAtByEachPass(t *testing.T) {
	const toForeign = `CREATE OR REPLACE VIEW orders AS SELECT * FROM far_orders`
	for name, c := range map[string]struct{ before, change, back string }{
		"a view": {toBase + `CREATE VIEW orders AS SELECT * FROM base`, foreignTable + toForeign,
			`CREATE OR REPLACE VIEW orders AS SELECT * FROM base`},
		"a partitioned table": {toBase + `CREATE TABLE orders (` + orderColumns + `) PARTITION BY RANGE (id)`,
			foreignTable + `ALTER TABLE orders ATTACH PARTITION far_orders FOR VALUES FROM (0) TO (10)`,
			`ALTER TABLE orders DETACH PARTITION far_orders`},
		"a table without children": {"SELECT 1", foreignTable + `
			ALTER FOREIGN TABLE far_orders ALTER id SET NOT NULL, INHERIT orders`,
			`ALTER FOREIGN TABLE far_orders NO INHERIT orders`},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 10))
			s.exec(c.before + mayRead)
			r := s.reader()
			r.poll()
			s.exec(c.change)
			r.isBlocked(poller.Request{}, "far_orders, a foreign table")
			s.exec(c.back)
			r.poll()
			r.sameAs(s)
		})
	}
}

func TestAViewOrPartitionsOfOrdinaryTablesAreRead(t *testing.T) {
	for name, ddl := range map[string]string{
		"views": toBase + `CREATE TABLE other (LIKE base); CREATE VIEW middle AS SELECT * FROM base UNION ALL
			SELECT * FROM other; CREATE VIEW orders AS SELECT * FROM middle`,
		"partitions": toBase + `CREATE TABLE orders (` + orderColumns + `) PARTITION BY RANGE (id);
			CREATE TABLE part PARTITION OF orders FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (id);
			CREATE TABLE one PARTITION OF part FOR VALUES FROM (0) TO (1000); INSERT INTO orders SELECT * FROM base`,
		"beside a foreign table": foreignTable + `CREATE VIEW v AS SELECT o.* FROM orders o, far_orders;
			CREATE MATERIALIZED VIEW m AS SELECT * FROM orders`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 10))
			s.exec(ddl + mayRead)
			r := s.reader()
			r.poll()
			r.poll()
			r.sameAs(s)
			if len(r.rows) != 10 {
				t.Errorf("%d rows", len(r.rows))
			}
		})
	}
}

// The table has policies, and PostgreSQL does not apply them to the role. preflight recommends BYPASSRLS.
func TestATableWhosePoliciesTheRoleIsAboveIsRead(t *testing.T) {
	const owners = "orders_owners"
	for name, above := range map[string]string{
		"a right of the role": "ALTER ROLE " + role + " BYPASSRLS",
		"a member of the owner": "CREATE ROLE " + owners + "; ALTER TABLE orders OWNER TO " + owners +
			"; GRANT " + owners + " TO " + role,
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 10))
			s.exec(`ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY ours ON orders USING (id > 5)`)
			t.Cleanup(func() {
				_, _ = s.admin.Exec(context.Background(), "ALTER ROLE "+role+" NOBYPASSRLS; "+
					"ALTER TABLE orders OWNER TO CURRENT_USER; DROP ROLE IF EXISTS "+owners)
			})
			s.exec(above)
			r := s.reader()
			r.poll()
			if r.poll(); len(r.rows) != 10 || r.lost > 0 || r.floor == nil {
				t.Errorf("%d rows of ten, lost %d times, floor %v", len(r.rows), r.lost, r.floor)
			}
		})
	}
}
