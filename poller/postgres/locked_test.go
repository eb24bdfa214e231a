package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
)

// A transaction that was open during the pass before commits. Then the table is filled anew, which locks
// everybody out meanwhile: the next pass has begun and waits. Under a snapshot from before, the table is
// empty now, and settled would pass the row.
func TestAPassThatWaitedForATableToBeFilledAnewReadsWhatIsInItThen(t *testing.T) {
	for name, fill := range map[string]string{
		"truncated": "CREATE TEMP TABLE kept AS TABLE orders; TRUNCATE orders; INSERT INTO orders TABLE kept",
		"swapped": "CREATE TABLE next (LIKE orders INCLUDING ALL); INSERT INTO next TABLE orders; " +
			"DROP TABLE orders; ALTER TABLE next RENAME TO orders; GRANT SELECT ON orders TO " + role,
		"rewritten": "ALTER TABLE orders ADD COLUMN note float DEFAULT random()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, ordersTable)
			s.exec(put(1, "clock_timestamp()"))
			r := s.readerOf(postgres.SourceConfig{Overlap: time.Millisecond})
			r.poll()
			late, filler := s.writer(), s.writer()
			run(t, late, "BEGIN")
			run(t, late, put(2, "clock_timestamp()"))
			r.poll()
			run(t, late, "COMMIT")
			run(t, filler, "BEGIN")
			run(t, filler, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
			read := make(chan error)
			go func() { read <- r.read(poller.Request{}) }()
			waiting := fmt.Sprintf("SELECT count(*) FROM pg_stat_activity "+
				"WHERE datname = '%s' AND wait_event_type = 'Lock'",
				s.name)
			for query[int64](s, waiting) == 0 {
				continue
			}
			run(t, filler, fill)
			run(t, filler, "COMMIT")
			if err := <-read; err != nil {
				t.Error(err)
			}
			for range 2 {
				r.poll()
			}
			r.sameAs(s)
		})
	}
}
