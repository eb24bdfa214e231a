package postgres_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// cancelledOrders makes orders a view of n rows. The server cancels a statement that reads more of them than
// the table most says.
func (s *shop) cancelledOrders(n, most int) {
	s.t.Helper()
	s.brokenOrders(n, `CREATE TABLE most AS SELECT 0 AS rows;
		CREATE FUNCTION counted(id bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
		DECLARE n int := coalesce(nullif(current_setting('shop' || '.n', true), ''), '0')::int + 1;
		BEGIN PERFORM set_config('shop' || '.n', n::text, true);
			IF n > (SELECT rows FROM most) THEN RAISE EXCEPTION 'a limit' USING ERRCODE = '57014'; END IF;
			RETURN 1;
		END $$;
		GRANT SELECT ON most TO `+role+`;
		CREATE VIEW orders AS SELECT id, counted(id) AS user_id, status, total_amount, created_at, updated_at
		FROM base`, "SELECT 1")
	s.most(most)
}

func (s *shop) most(rows int) {
	s.t.Helper()
	if _, err := s.admin.Exec(s.t.Context(), "UPDATE most SET rows = $1", rows); err != nil {
		s.t.Fatal(err)
	}
}

// A busy hour of the server must not make the reads of a whole day small, and a limit that stays must not be
// met again and again.
func TestAfterACutTransactionsDoubleUntilNearTheSizeThatFailed(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.cancelledOrders(20_000, 0)
	r := s.readerOf(postgres.SourceConfig{MaxRows: 4096})
	if err := r.read(poller.Request{}); err == nil || !strings.Contains(err.Error(), "SQLSTATE 57014") {
		t.Fatalf("%v, expected that the server cancels every statement", err)
	}
	s.most(300)
	before, read := r.timeouts(), 0
	r.before = func(b poller.Batch) error {
		if read += len(b.Rows); read > 12_000 {
			s.most(100_000)
		}
		return nil
	}
	r.poll()
	r.sameAs(s)
	if n := len(r.batches); n > 100 {
		t.Errorf("20,000 rows came in %d transactions", n)
	}
	if n := r.timeouts() - before; n == 0 || n > 4 {
		t.Errorf("the server cancelled %v statements", n)
	}
}

// The server has read no row, so the time says nothing about the size of a read.
func TestAConnectionThatFailsLateMakesNoReadSmaller(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()") + ";" + put(2, "now()"))
	silent, err := servers.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	g := openGate(t, server.Port)
	defer g.cut()
	go func() {
		if conn, err := silent.Accept(); err == nil {
			<-time.After(1100 * time.Millisecond) // longer than a cut read lasts
			g.lead(server.Port)
			conn.Close()
		}
	}()
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{MaxRows: 1})
	r.before = func(poller.Batch) error {
		if len(r.rows) == 0 {
			g.lead(silent.Addr().(*net.TCPAddr).Port)
		}
		return nil
	}
	r.poll()
	r.sameAs(s)
	if n := r.timeouts(); n > 0 {
		t.Errorf("%v reads were made smaller", n)
	}
}

// PostgreSQL ends a login that takes too long with the code of a cancelled statement.
func TestALoginThatTheServerCancelsIsNoReadOfRows(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()") + ";" + put(2, "now()"))
	g := openGate(t, server.Port)
	defer g.cut()
	r := openReader(t, g.dsn(s.name), postgres.SourceConfig{MaxRows: 1})
	r.before = func(poller.Batch) error {
		g.edit(func() func([]byte) ([]byte, bool) {
			return func([]byte) ([]byte, bool) { return fatal("57014", "canceling authentication"), false }
		})
		g.cut()
		return nil
	}
	err := r.read(poller.Request{})
	if err == nil || !strings.Contains(err.Error(), "57014") || strings.Contains(err.Error(), "index") ||
		r.timeouts() > 0 {
		t.Errorf("%v, and %v timeouts of reads", err, r.timeouts())
	}
}
