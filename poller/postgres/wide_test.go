package postgres_test

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// rowsSent counts the rows that servers send through a gate.
type rowsSent struct{ n atomic.Int64 }

// follow reads one connection: after the type of a message come its length in four bytes, and itself.
func (r *rowsSent) follow() func([]byte) {
	var head []byte
	rest := 0 // of the message in hand
	return func(b []byte) {
		for len(b) > 0 {
			if rest > 0 {
				n := min(rest, len(b))
				rest, b = rest-n, b[n:]
				continue
			}
			head, b = append(head, b[0]), b[1:]
			if len(head) == 5 {
				rest = int(binary.BigEndian.Uint32(head[1:])) - 4
				if head[0] == 'D' && rest > 60 { // not the clock's
					r.n.Add(1)
				}
				head = head[:0]
			}
		}
	}
}

// wideOrders inserts n orders from id on, a second apart, whose status has so many bytes.
func wideOrders(from, n, width int) string {
	return fmt.Sprintf(`INSERT INTO orders SELECT i, 1, repeat('x', %d), 9.99, now(),
		now() - interval '1 day' + i * interval '1 s' FROM generate_series(%d, %d) i`, width, from, from+n-1)
}

// Nobody knows how wide the next rows are.
func TestRowsAreReadOnceHoweverWideTheyAre(t *testing.T) {
	const wide = 100_000
	for name, fill := range map[string][]string{
		"wide rows alone": {wideOrders(1, 600, wide)},
		"a narrow one between two": {wideOrders(1, 800, wide),
			"UPDATE orders SET status = 'Shipped' WHERE id % 2 = 0"},
		"many narrow ones, some wide, and again": {wideOrders(1, 20_000, 5), wideOrders(20_001, 300, wide),
			wideOrders(21_001, 20_000, 5), wideOrders(42_001, 300, wide), wideOrders(43_001, 9_000, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			for _, sql := range fill {
				s.exec(sql)
			}
			rows := query[int64](s, "SELECT count(*) FROM orders")
			var sent rowsSent
			g := openGate(t, server.Port)
			g.watch(sent.follow)
			defer g.cut() // or closing the reader would wait for an answer to its farewell
			r := openReader(t, g.dsn(s.name), postgres.SourceConfig{})
			r.before = func(b poller.Batch) error {
				bytes := 0
				for _, row := range b.Rows {
					bytes += len(row.Value)
				}
				if bytes > 1<<20+1<<19+wide+100 {
					t.Errorf("a batch of %d bytes in %d rows", bytes, len(b.Rows))
				}
				return nil
			}
			r.poll()
			r.sameAs(s)
			if n := sent.n.Load(); n > rows+rows/5 {
				t.Errorf("the server sent %d rows for %d", n, rows)
			}
		})
	}
}
