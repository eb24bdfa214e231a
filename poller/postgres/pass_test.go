package postgres_test

import (
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

// K1, as most people meet it.
func TestALateCommitWithAnEarlierStampIsRead(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now() - interval '1 hour'"))
	r := s.reader()
	r.poll()

	late := s.writer()
	run(t, late, "BEGIN")
	run(t, late, put(2, "clock_timestamp()"))
	s.exec(put(3, "clock_timestamp()"))
	r.poll()
	r.has(1, 3)
	run(t, late, "COMMIT")
	r.poll()
	r.has(2)
	r.settles(schemas.InstantOf(query[time.Time](s, "SELECT updated_at FROM orders WHERE id = 3")))
}
