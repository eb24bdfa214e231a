package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// examiner is a DB as `check` opens it.
func examiner(t *testing.T, dsn string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(rotation.Literal(dsn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func TestTheServerIsDescribed(t *testing.T) {
	s := openShop(t, ordersTable)
	found, shown, err := postgres.CheckServer(t.Context(), examiner(t, server.DSN(role, password, s.name)))
	if err != nil || !strings.HasPrefix(found, "PostgreSQL 1") || shown != nil ||
		!strings.HasSuffix(found, "role "+role+", database "+s.name) {
		t.Errorf("%s, %v", found, err)
	}
}

func TestATablesIndexIsFoundOnlyWhereReadsCanGoByIt(t *testing.T) {
	const bare = `CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, status text,
		total_amount numeric(12,2), created_at timestamptz, updated_at timestamptz);`
	for name, test := range map[string]struct {
		ddl   string
		index bool
	}{
		"none":              {bare, false},
		"both":              {ordersTable, true},
		"both, descending":  {bare + `CREATE INDEX ON orders (updated_at DESC, id DESC)`, true},
		"in two directions": {bare + `CREATE INDEX ON orders (updated_at DESC, id)`, false},
		"updated_at alone":  {bare + `CREATE INDEX ON orders (updated_at)`, false},
		"the other order":   {bare + `CREATE INDEX ON orders (id, updated_at)`, false},
		"partial":           {bare + `CREATE INDEX ON orders (updated_at, id) WHERE status = 'Shipped'`, false},
		"with more":         {bare + `CREATE INDEX ON orders (updated_at, id, status)`, true},
		"included, not key": {bare + `CREATE INDEX ON orders (updated_at) INCLUDE (id)`, false},
		"a view has no need": {bare + `ALTER TABLE orders RENAME TO base;
			CREATE VIEW orders AS SELECT * FROM base`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, test.ddl)
			db := examiner(t, pooler.DSN(role, password, s.name))
			found, err := postgres.CheckTable(t.Context(), db, orders)
			if err != nil {
				t.Fatal(err)
			}
			want := "CREATE INDEX CONCURRENTLY ON \"public\".\"orders\" (updated_at, id);"
			if test.index || strings.Contains(name, "view") {
				want = ""
			}
			if view := strings.Contains(name, "view"); view != (found.NoFloor == "it is a view") {
				t.Errorf("no floor: %q", found.NoFloor)
			}
			if found.CreateIndex != want {
				t.Errorf("%q, expected %q", found.CreateIndex, want)
			}
			if want == "" {
				return
			}
			s.exec(found.CreateIndex) // it is good for what it says
			found, err = postgres.CheckTable(t.Context(), db, orders)
			if err != nil || found.CreateIndex != "" {
				t.Errorf("after %s: %+v, %v", want, found, err)
			}
		})
	}
}

func TestWhatATableLacksOrHidesIsSaid(t *testing.T) {
	s := openShop(t, `CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, total_amount numeric(12,2),
		created_at timestamptz, updated_at timestamptz)`)
	s.exec("GRANT UPDATE ON orders TO " + role)
	s.exec("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
	db := examiner(t, pooler.DSN(role, password, s.name))
	found, err := postgres.CheckTable(t.Context(), db, orders)
	if err != nil || !found.Writable || !found.Hidden || !slices.Equal(found.Missing, []string{"status"}) ||
		found.Unknown != nil {
		t.Errorf("%+v, %v", found, err)
	}
	s.exec(`ALTER TABLE orders ADD gift_note text, ADD secret text, ADD "Discount" text, ADD old text`)
	s.exec("ALTER TABLE orders DROP old")
	s.exec("REVOKE SELECT ON orders FROM " + role)
	s.exec(`GRANT SELECT (id, user_id, total_amount, created_at, updated_at, gift_note, "Discount")
		ON orders TO ` +
		role)
	found, err = postgres.CheckTable(t.Context(), db, orders)
	if err != nil || !slices.Equal(found.Unknown, []string{"Discount", "gift_note"}) {
		t.Errorf("columns that the schema does not know, and the role may read: %+v, %v", found, err)
	}
}

func TestWhatOnlyAPersonCanFixBlocksWithItsRemedy(t *testing.T) {
	for name, test := range map[string]struct{ change, says string }{
		"no SELECT": {"REVOKE SELECT ON orders FROM " + role, "GRANT SELECT ON"},
		"no table":  {"DROP TABLE orders", "has no table orders"},
		"a column too small": {"ALTER TABLE orders ALTER COLUMN user_id TYPE boolean USING true",
			"column user_id is bool"},
		"no updated_at": {"ALTER TABLE orders DROP COLUMN updated_at", "column updated_at is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(test.change)
			_, err := postgres.CheckTable(t.Context(), examiner(t, pooler.DSN(role, password, s.name)), orders)
			var blocked *poller.BlockedError
			if !errors.As(err, &blocked) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, expected a BlockedError that says %q", err, test.says)
			}
		})
	}
}
