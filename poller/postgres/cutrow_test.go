package postgres_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// cutter cuts connections as PgBouncer 1.18 does: it puts its error into the middle of a row that is on its
// way.
type cutter struct {
	rows  int          // the row of a connection that is cut
	left  int          // the bytes of that row that do not come
	times atomic.Int32 // connections that are still to be cut
	says  []byte       // the error
}

// fatal is the message of an error that ends a connection.
func fatal(sqlstate, text string) []byte {
	body := "SFATAL\x00C" + sqlstate + "\x00M" + text + "\x00\x00"
	return append(binary.BigEndian.AppendUint32([]byte("E"), uint32(len(body)+4)), body...)
}

// follow edits one connection. Rows of more than 60 bytes are those of orders.
func (c *cutter) follow() func([]byte) ([]byte, bool) {
	var rest []byte // has come, and is no whole message yet
	seen := 0
	return func(b []byte) ([]byte, bool) {
		sent := []byte{}
		for rest = append(rest, b...); len(rest) >= 5; {
			n := 1 + int(binary.BigEndian.Uint32(rest[1:]))
			if len(rest) < n {
				break
			}
			if rest[0] == 'D' && n > 65 {
				seen++
			}
			if seen == c.rows && c.times.Add(-1) >= 0 {
				return append(append(sent, rest[:n-c.left]...), c.says...), false
			}
			sent, rest = append(sent, rest[:n]...), rest[n:]
		}
		return sent, true
	}
}

// The error's bytes stand where the row's last values would, and the row is as long as it says.
func TestARowIntoWhichAPoolerWritesItsErrorIsReadAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 60))
	says := fatal("08P01", "query_timeout")
	whole := s.direct(postgres.SourceConfig{})
	whole.poll()
	for left := 1; left <= 40; left++ {
		row := []int{1, 30, 60}[left%3]
		c := &cutter{rows: row, left: left, says: says}
		c.times.Store(1)
		g := openGate(t, server.Port)
		g.edit(c.follow)
		r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
		r.poll()
		if r.sameAs(s); len(r.rejects) > 0 || c.times.Load() > 0 {
			t.Errorf("row %d cut %d bytes before its end: %d rejects", row, left, len(r.rejects))
		}
		for id, got := range r.rows {
			if string(got.Value) != string(whole.rows[id].Value) {
				t.Errorf("row %d cut %d bytes before its end: order %d has other values", row, left, id)
			}
		}
		g.cut()
	}
}

// slowOrders makes orders a view of n rows that take so many milliseconds each. A server sends the first ones
// when 8 KiB have come together: some hundred rows.
func (s *shop) slowOrders(n, millis int, body string) {
	s.t.Helper()
	s.brokenOrders(n, fmt.Sprintf(`CREATE FUNCTION wait(id bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
		BEGIN PERFORM pg_sleep(%d / 1000.0); %s RETURN 1; END $$;
		CREATE VIEW orders AS SELECT id, wait(id) AS user_id, status,
		total_amount, created_at, updated_at FROM base`, millis, body), "SELECT 1")
}

// throughAStrictPooler reads through a PgBouncer that ends each statement after a second.
func (s *shop) throughAStrictPooler() *reader {
	s.t.Helper()
	strict := servers.PgBouncerForTest(s.t, servers.PgBouncerConfig{Postgres: server,
		Users: map[string]string{role: password}, Settings: map[string]string{"query_timeout": "1"}})
	return openReader(s.t, strict.DSN(role, password, s.name), postgres.SourceConfig{MaxRows: 400})
}

// PgBouncer ends such a statement with the code of a lost database.
func TestAReadThatThePoolerCutsForItsTimeGoesOnInSmallerOnes(t *testing.T) {
	t.Parallel()
	s := openShop(t, ordersTable)
	s.slowOrders(150, 20, "")
	r := s.throughAStrictPooler()
	r.poll()
	r.sameAs(s)
}

// The buffer that a server sends ends in the middle of a row, mostly. PgBouncer has handed that on when the
// time is over.
func TestRowsThatPgBouncerCutsForTheirTimeAreReadAsTheyAre(t *testing.T) {
	for width := range 12 {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.slowOrders(150, 8, "")
			s.exec(fmt.Sprintf("UPDATE base SET status = repeat('x', %d)", width+1))
			whole := s.direct(postgres.SourceConfig{})
			whole.poll()
			r := s.throughAStrictPooler()
			r.poll()
			if r.sameAs(s); len(r.rejects) > 0 {
				t.Errorf("%d dead letters", len(r.rejects))
			}
			for id, got := range r.rows {
				if string(got.Value) != string(whole.rows[id].Value) {
					t.Errorf("order %d has other values", id)
				}
			}
		})
	}
}

// Other poolers have other codes, or only close the connection. What the server has sent does not come.
func TestAReadThatDiesAfterATimeIsNotAskedForAgainAsItWas(t *testing.T) {
	for name, says := range map[string][]byte{"nothing": nil, "58000": fatal("58000", "timeout"),
		"XX000": fatal("XX000", "timeout"), "57P01": fatal("57P01", "timeout")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.slowOrders(150, 20, `IF clock_timestamp() > transaction_timestamp() + interval '1.1 s' THEN
				RAISE EXCEPTION 'cut'; END IF;`)
			g := openGate(t, server.Port)
			g.edit(func() func([]byte) ([]byte, bool) {
				return func(b []byte) ([]byte, bool) {
					if bytes.Contains(b, []byte("\x00Mcut\x00")) {
						return says, false
					}
					return b, true
				}
			})
			defer g.cut()
			r := openReader(t, g.dsn(s.name), postgres.SourceConfig{MaxRows: 400})
			var err error
			for range 6 { // the poller's tries
				if err = r.read(poller.Request{Kind: poller.Pass}); err == nil {
					break
				}
			}
			if r.sameAs(s); err != nil {
				t.Error(err)
			}
		})
	}
}
