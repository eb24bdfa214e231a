package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// Amazon Aurora has pg_walfile_name, and raises an error. Others do so with the pg_control functions.
func TestAServerThatDoesNotSayWhichDatabaseItIsIsRead(t *testing.T) {
	for name, c := range map[string]struct{ function, result, sqlstate string }{
		"pg_walfile_name":            {"pg_walfile_name(pg_lsn)", "text", "0A000"},
		"pg_walfile_name, a state":   {"pg_walfile_name(pg_lsn)", "text", "55000"},
		"pg_control_system":          {"pg_control_system()", "TABLE(system_identifier bigint)", "XX000"},
		"pg_control_system, a right": {"pg_control_system()", "TABLE(system_identifier bigint)", "42501"},
		"pg_stat_get_archiver":       {"pg_stat_get_archiver()", "TABLE(stats_reset timestamptz)", "0A000"},
		"pg_stat_get_slru":           {"pg_stat_get_slru()", "TABLE(stats_reset timestamptz)", "XX000"},
		"pg_control_system, raising": {"pg_control_system()", "TABLE(system_identifier bigint)", "P0001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 20))
			s.exec(fmt.Sprintf(`CREATE SCHEMA fake; GRANT USAGE ON SCHEMA fake TO %s;
				CREATE FUNCTION fake.%s RETURNS %s LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'not in this cloud' USING ERRCODE = '%s'; END $$;
				ALTER DATABASE %s SET search_path = fake, pg_catalog, public`, role, c.function, c.result, c.sqlstate,
				s.name))
			r := s.readerOf(shortOverlap)
			r.poll()
			s.exec(put(30, "now()"))
			r.poll()
			if err := r.read(poller.Request{Kind: poller.Full, From: schemas.MinInstant}); err != nil {
				t.Fatal(err)
			}
			if r.sameAs(s); r.lost != 0 || r.floor != nil {
				t.Errorf("lost %d times, %+v; floor %v", r.lost, r.why, r.floor)
			}
			r.settles(s.instant("SELECT max(updated_at) FROM orders"))
			found, err := postgres.CheckTable(t.Context(), examiner(t, pooler.DSN(role, password, s.name)), orders)
			if err != nil || !strings.Contains(found.NoFloor, "not in this cloud (SQLSTATE "+c.sqlstate+")") {
				t.Errorf("check: %+v, %v", found, err)
			}
		})
	}
}
