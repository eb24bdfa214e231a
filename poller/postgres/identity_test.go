package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// relation is a kind of relation that orders may be.
type relation struct {
	ddl  string // makes orders one, from an ordinary table
	base string // the table that rows are written to
}

// relations are all kinds that are read.
var relations = map[string]relation{
	"a table": {"SELECT 1", "orders"},
	"a view":  {ordersView, "base"},
	"a partitioned table": {"DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, " +
		"status text, total_amount numeric(12,2), created_at timestamptz, updated_at timestamptz) " +
		"PARTITION BY HASH (id); CREATE TABLE part PARTITION OF orders FOR VALUES WITH (MODULUS 1, REMAINDER 0); " +
		"GRANT SELECT ON orders TO " + role, "orders"},
	"a table with a child": {"CREATE TABLE child () INHERITS (orders)", "orders"},
	"a view of a partitioned table": {"DROP TABLE orders; CREATE TABLE base (id bigint PRIMARY KEY, " +
		"user_id bigint, " +
		"status text, total_amount numeric(12,2), created_at timestamptz, updated_at timestamptz) " +
		"PARTITION BY HASH (id); CREATE TABLE part PARTITION OF base FOR VALUES WITH (MODULUS 1, REMAINDER 0); " +
		"CREATE VIEW orders AS SELECT * FROM base; GRANT SELECT ON orders TO " + role, "base"},
}

// put is put into the table that is below.
func (k relation) put(id int, stamp string) string {
	return strings.Replace(put(id, stamp), "INTO orders", "INTO "+k.base, 1)
}

// eachRelation runs test for each kind of relation.
func eachRelation(t *testing.T, test func(*testing.T, relation)) {
	t.Helper()
	for name, kind := range relations {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, kind) })
	}
}

// oldOrders fills a table with rows that were stamped long ago.
const oldOrders = "INSERT INTO %s SELECT i, 1, 'Complete', 1, now() - interval '3 hours', now() - " +
	"interval '3 hours' " +
	"FROM generate_series(1, 20) i"

func TestADumpThatIsRestoredIntoTablesThatAreCreatedAnewIsReadAgain(t *testing.T) {
	eachRelation(t, func(t *testing.T, kind relation) {
		t.Helper()
		s := openShop(t, ordersTable)
		s.exec(kind.ddl)
		s.exec(fmt.Sprintf(oldOrders, kind.base))
		r := s.readerOf(shortOverlap)
		r.poll()
		s.exec("UPDATE orders SET status = 'Changed', updated_at = now()")
		r.poll()
		r.poll()
		s.exec("DROP TABLE IF EXISTS base CASCADE; DROP TABLE IF EXISTS orders CASCADE; " + ordersTable +
			"; GRANT SELECT ON orders TO " + role + "; " + kind.ddl)
		s.exec(fmt.Sprintf(oldOrders, kind.base))
		r.poll()
		r.poll()
		if r.lost != 1 || !r.why.Sweep {
			t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
		}
	})
}

// The swap by renaming: the name leads to another table of the same kind in the same schema.
func TestATableThatIsSwappedByRenamingIsReadAgainByItself(t *testing.T) {
	eachRelation(t, func(t *testing.T, kind relation) {
		t.Helper()
		s := openShop(t, ordersTable)
		s.exec(kind.ddl)
		s.exec(kind.put(1, "now()"))
		r := s.readerOf(longOverlap)
		r.poll()
		swap := "ALTER TABLE orders RENAME TO old; ALTER INDEX IF EXISTS orders_pkey RENAME TO old_pkey; " +
			"ALTER TABLE IF EXISTS base RENAME TO old_base; ALTER INDEX IF EXISTS base_pkey RENAME TO " +
			"old_base_pkey; " +
			"ALTER TABLE IF EXISTS part RENAME TO old_part; ALTER INDEX IF EXISTS part_pkey RENAME TO " +
			"old_part_pkey; " +
			"ALTER TABLE IF EXISTS child RENAME TO old_child; "
		s.exec(swap + ordersTable + "; GRANT SELECT ON orders TO " + role + "; " + kind.ddl)
		s.exec(kind.put(1, "now() - interval '1 minute'"))
		s.exec(kind.put(2, "now() - interval '1 minute'"))
		r.poll()
		r.has(2)
		if r.lost != 1 || !r.why.Sweep {
			t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
		}
	})
}

// A table that was moved is the same one, wherever search_path finds it.
func TestATableThatIsMovedToAnotherSchemaIsTheSameOne(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	r := s.readerOf(longOverlap)
	r.poll()
	s.exec(fmt.Sprintf("CREATE SCHEMA %[1]s; GRANT USAGE ON SCHEMA %[1]s TO %[1]s; ALTER TABLE orders "+
		"SET SCHEMA %[1]s",
		role))
	s.exec(fmt.Sprintf("INSERT INTO %s.orders VALUES (2, 1, 'Complete', 1, now(), now())", role))
	r.poll()
	if r.has(2); r.lost != 0 || r.identity.Schema != role {
		t.Errorf("lost %d times, %+v, expected never", r.lost, r.why)
	}
}

// The schema of the table is not in the role's search_path any more.
func TestANameThatLeadsToNoTableAnyMoreBlocksAndSaysSo(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	r := s.direct(longOverlap)
	r.poll()
	change := func(searchPath string) {
		s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s %s", role, s.name, searchPath))
		s.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() " +
			"AND pid <> pg_backend_pid()")
	}
	change("SET search_path = nowhere")
	r.isBlocked(poller.Request{}, "has no table orders that role")
	change("RESET search_path")
	r.poll()
}

// Another table has the name, and its owner has not put it in the place of the one before.
func TestAnotherTableBlocksUntilItIsGoneOrAPersonConfirmsIt(t *testing.T) {
	const first = "CREATE SCHEMA " + role + "; GRANT USAGE ON SCHEMA " + role + " TO " + role + "; CREATE %s; " +
		"GRANT SELECT ON " + role + ".orders TO " + role
	for name, c := range map[string]struct{ another, back string }{
		"a table in a schema that comes first": {
			fmt.Sprintf(first, "TABLE "+role+".orders (LIKE orders INCLUDING ALL)"), "DROP SCHEMA " +
				"" + role + " CASCADE"},
		"a view in a schema that comes first": {
			fmt.Sprintf(first, "VIEW "+role+".orders AS SELECT * FROM orders LIMIT 3"), "DROP SCHEMA " +
				"" + role + " CASCADE"},
		"search_path of the role": {others + "ALTER ROLE " + role + " IN DATABASE %s SET search_path = " +
			"mine, public",
			"ALTER ROLE " + role + " IN DATABASE %s RESET search_path"},
		"a view in its place": {"ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT * FROM " +
			"base LIMIT 3; " +
			"GRANT SELECT ON orders TO " + role, "DROP VIEW orders; ALTER TABLE base RENAME TO orders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, confirmed := range []bool{false, true} {
				s := openShop(t, ordersTable)
				named := func(sql string) string { return strings.Replace(sql, "%s", s.name, 1) }
				s.exec(fmt.Sprintf(manyOrders, 20))
				r := s.direct(longOverlap)
				r.poll()
				s.exec(named(c.another))
				for range 2 {
					r.source = s.direct(longOverlap).source
					for _, q := range []poller.Request{{}, {Kind: poller.Full, From: schemas.MinInstant},
						{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 7}}}, {}} {
						r.isBlocked(q, "leads to another table")
						r.isBlocked(q, "storestream watermark reset orders --confirm-schema ")
					}
				}
				if confirmed {
					r.identity = r.identity.Confirmed("another") // as a reset does that names another one
					r.isBlocked(poller.Request{}, "leads to another table")
					_, named, _ := strings.Cut(r.read(poller.Request{}).Error(), "--confirm-schema ")
					r.identity = r.identity.Confirmed(strings.Fields(named)[0])
				} else {
					s.exec(named(c.back))
					r.source = s.direct(longOverlap).source
				}
				r.poll()
				if lost := map[bool]int{true: 1}[confirmed]; r.lost != lost || confirmed && !r.why.Sweep {
					t.Errorf("confirmed %v: lost %d times, %+v, expected %d", confirmed, r.lost, r.why, lost)
				}
			}
		})
	}
}

// What the name leads to changes while an open transaction delays settling: rows show up that were stamped
// after settled, and longer than an overlap ago.
func TestRowsThatAnOtherRelationBringsBesideAnOpenTransactionAreRead(t *testing.T) {
	for name, c := range map[string]struct{ ddl, base, change string }{
		"a partition": {"DROP TABLE orders; CREATE TABLE orders (LIKE other) PARTITION BY RANGE (id); " +
			"GRANT SELECT ON orders TO " + role + "; CREATE TABLE low PARTITION OF orders FOR VALUES FROM (0) TO (9)",
			"orders", "ALTER TABLE orders ATTACH PARTITION other FOR VALUES FROM (9) TO (99)"},
		"a table in a view": {ordersView, "base",
			"CREATE OR REPLACE VIEW orders AS SELECT * FROM base UNION ALL SELECT * FROM other"},
		"a table in a view below a view": {"ALTER TABLE orders RENAME TO base; CREATE VIEW middle AS " +
			"SELECT * FROM base; " +
			"CREATE VIEW orders AS SELECT * FROM middle; GRANT SELECT ON orders TO " + role, "base",
			"CREATE OR REPLACE VIEW middle AS SELECT * FROM base UNION ALL SELECT * FROM other"},
		"a view that shows more of the same table": {"ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS " +
			"SELECT * FROM base WHERE id < 9; INSERT INTO base SELECT * FROM other; GRANT SELECT ON orders TO " + role,
			"base", "CREATE OR REPLACE VIEW orders AS SELECT * FROM base"},
		"a child": {"SELECT 1", "orders", "ALTER TABLE other INHERIT orders"},
		"a child of a child": {"CREATE TABLE child () INHERITS (orders)", "orders", "ALTER TABLE other " +
			"INHERIT child"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec("CREATE TABLE other (LIKE orders INCLUDING ALL); GRANT SELECT ON other TO " + role)
			s.exec("INSERT INTO other VALUES (9, 1, 'Complete', 1, now(), now() + interval '1 second')")
			stamped := s.instant("SELECT updated_at FROM other")
			s.exec(c.ddl)
			put := "INSERT INTO " + c.base + " VALUES (%d, 1, 'Complete', 1, now(), now())"
			s.exec(fmt.Sprintf(put, 1))
			r := s.readerOf(shortOverlap)
			r.poll()
			w := s.writer()
			run(t, w, "BEGIN")
			run(t, w, fmt.Sprintf(put, 2)) // stays open
			for s.instant("SELECT clock_timestamp()") < stamped.Add(10*shortOverlap.Overlap) {
				s.exec(fmt.Sprintf(put, 3) + "; DELETE FROM " + c.base + " WHERE id = 3")
				r.poll()
				r.pause()
			}
			if r.settled > stamped {
				t.Fatalf("settled %s is past %s already", r.settled, stamped)
			}
			s.exec(c.change)
			r.poll()
			run(t, w, "COMMIT")
			r.settles(s.instant("SELECT clock_timestamp()"))
			if r.has(9); r.lost != 1 || !r.why.Sweep {
				t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
			}
		})
	}
}
