package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

// otherOrders makes twenty orders of another table, in a schema that the role may read.
const otherOrders = `CREATE SCHEMA mine; CREATE TABLE mine.orders AS SELECT * FROM public.orders ORDER
	BY id LIMIT 20;
	UPDATE mine.orders SET status = 'TEMPORARY', updated_at = now(); GRANT USAGE ON SCHEMA mine TO ` +
	storefake.ReaderRole + `; GRANT SELECT ON mine.orders TO ` + storefake.ReaderRole

// Another client of the pooler leaves a table of the name, or a search_path, on the only connection to the
// server.
func TestWhatAnotherClientLeavesOnAPooledConnectionIsNotPublished(t *testing.T) {
	for name, left := range map[string][]string{
		"a temporary table": {"BEGIN READ WRITE", "CREATE TEMP TABLE orders AS SELECT * FROM " +
			"public.orders ORDER BY id LIMIT 20",
			"UPDATE orders SET status = 'TEMPORARY', updated_at = now()", "COMMIT"},
		"a search_path": {"SET search_path = mine, public"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{yaml: quick + "sweep: {deletes: tombstone}", fake: smallShop(72),
				pooler: servers.PgBouncerConfig{PoolSize: 1}})
			p := s.spawn("run")
			p.isReady()
			s.converge()
			s.sql(otherOrders)
			config, err := pgx.ParseConfig(s.dsn)
			if err != nil {
				t.Fatal(err)
			}
			config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
			other, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			for _, sql := range left {
				if _, err := other.Exec(t.Context(), sql); err != nil {
					t.Fatal(sql, err)
				}
			}
			_ = other.Close(t.Context())
			s.updateAll()
			s.converge()
			before := s.mark(storefake.Orders)
			s.expect(0, nil, "sweep", storefake.Orders, "--yes", "--confirm-deletes", "1000")
			s.done(storefake.Orders, before)
			s.converge()
			s.expect(0, []string{"Identical"}, "verify", storefake.Orders)
			for _, r := range s.topic(storefake.Orders) {
				if r.value["status"] == "TEMPORARY" {
					t.Fatalf("an order of another table was published: %v", r.value)
				}
			}
			p.stop()
		})
	}
}

// The role's search_path leads to another table. Nothing is read of it until somebody says that it is right.
func TestAnotherTableOfTheNameWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(73)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	s.sql(otherOrders + "; ALTER ROLE " + storefake.ReaderRole + " SET search_path = mine, public")
	if err := s.pgbouncer.Restart(t.Context()); err != nil { // its connections have the path from before
		t.Fatal(err)
	}
	eventually(t, "orders are blocked", func() (bool, string) {
		r := p.resource(storefake.Orders)
		return strings.Contains(r.Why, "leads to another table"), r.State + " " + r.Why
	})
	s.expect(4, []string{"leads to another table", "storestream watermark reset orders " +
		"--confirm-schema mine --to"}, "watermark", "list")
	s.expect(1, []string{"leads to another table"}, "verify", storefake.Orders)
	if n := len(s.newest(storefake.Orders)); n != len(s.ids(storefake.Orders)) {
		t.Errorf("%d orders are in the topic", n)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	before := s.mark(storefake.Orders)
	s.reset(today, storefake.Orders) // a replay confirms no table
	s.accepted(storefake.Orders, before)
	eventually(t, "orders are still blocked", func() (bool, string) {
		r := p.resource(storefake.Orders)
		return r.State == "blocked" && strings.Contains(r.Why, "leads to another table"), r.State + " " + r.Why
	})
	if out, errs, code := s.do("watermark", "reset", storefake.Orders, "--to", today, "--confirm-schema", "mine",
		"--yes"); code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	eventually(t, "the orders of the other table are published", func() (bool, string) {
		for _, r := range s.topic(storefake.Orders) {
			if r.value["status"] == "TEMPORARY" {
				return true, ""
			}
		}
		return false, p.resource(storefake.Orders).Why
	})
	p.stop()
}
