package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// A server's clock cannot be set without its machine's. But now() is found along search_path, so in this
// database it is a function of ours, for those who write and for those who read.
func openShopWithAClock(t *testing.T, ddl string) *shop {
	t.Helper()
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(`CREATE SCHEMA fake;
		CREATE TABLE fake.ahead AS SELECT interval '0' AS by;
		CREATE FUNCTION fake.now() RETURNS timestamptz LANGUAGE sql STABLE SECURITY DEFINER
			AS 'SELECT pg_catalog.now() + by FROM fake.ahead';
		GRANT USAGE ON SCHEMA fake TO %s;
		ALTER DATABASE %s SET search_path = fake, pg_catalog, public`, role, s.name))
	s.exec(ddl)
	s.admin = s.writer()
	return s
}

func (s *shop) setClock(ahead string) {
	s.t.Helper()
	s.exec(fmt.Sprintf("UPDATE fake.ahead SET by = '%s'", ahead))
}

func TestWhatIsStampedByAClockThatWasSetBackIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		ddl       string
		successor bool
	}{
		"while it is polled":   {},
		"a view":               {ddl: ordersView},
		"while no owner lives": {successor: true},
		"a view, and no owner": {ddl: ordersView, successor: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShopWithAClock(t, c.ddl)
			for i := range 5 {
				s.exec(put(i, "now()"))
			}
			r := s.readerOf(shortOverlap)
			r.settles(s.instant("SELECT max(updated_at) FROM orders"))
			s.setClock("-1 hour")
			s.exec(put(3, "now()"))
			s.exec(put(7, "now()"))
			if c.successor {
				r.source = s.readerOf(shortOverlap).source
			}
			r.poll()
			if c.successor { // how low the clock went it cannot know
				if err := r.read(poller.Request{Kind: poller.Full, From: schemas.MinInstant}); err != nil {
					t.Fatal(err)
				}
			}
			r.sameAs(s)
			if r.lost != 1 || !r.why.Sweep || !strings.Contains(r.why.Why, "clock was set back") {
				t.Errorf("lost %d times, %+v, expected once, and a sweep", r.lost, r.why)
			}
			// It goes on by the new clock.
			r.settles(s.instant("SELECT updated_at FROM orders WHERE id = 7"))
			s.exec(put(8, "now()"))
			r.source = s.readerOf(shortOverlap).source
			r.poll()
			if r.sameAs(s); r.lost != 1 || r.settled > s.instant("SELECT now()") {
				t.Errorf("lost %d times, settled %s: it does not go by the new clock", r.lost, r.settled)
			}
		})
	}
}

// A replay reads these rows anyway. It may be cancelled, so it says that settled does not hold any more.
func TestAReplayNoticesThatTheClockWasSetBack(t *testing.T) {
	for name, successor := range map[string]bool{"while it is polled": false, "while no owner lives": true} {
		t.Run(name, func(t *testing.T) {
			s := openShopWithAClock(t, "")
			s.exec(put(1, "now()"))
			r := s.readerOf(shortOverlap)
			r.settles(s.instant("SELECT max(updated_at) FROM orders"))
			passed := r.settled
			s.setClock("-1 hour")
			if successor {
				r.source = s.readerOf(shortOverlap).source
			}
			r.settled, r.cursor, r.floor = schemas.MinInstant, nil, nil
			if err := r.readOnce(poller.Request{Passed: passed}); !errors.As(err, new(*poller.LostError)) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// The transaction stamped before the step, and writes after it.
func TestWhatWasStampedBeforeTheClockWasSetForwardIsRead(t *testing.T) {
	s := openShopWithAClock(t, "")
	r := s.readerOf(postgres.SourceConfig{Overlap: 3 * time.Second})
	s.exec(put(1, "now()"))
	r.poll()
	stamp := s.instant("SELECT now()")
	s.setClock("1 hour")
	s.exec(put(1, "now()"))
	r.poll()
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(2, fmt.Sprintf("'%s'", stamp)))
	delayed := r.poll().Delayed
	r.poll()
	run(t, w, "COMMIT")
	r.poll()
	if r.sameAs(s); !strings.Contains(delayed, "clock was set forward") {
		t.Errorf("settled stands still, and it says %q", delayed)
	}
	r.until("settled by the new clock", func(poller.Done) bool { return r.settled > stamp.Add(30*time.Minute) })
	s.setClock("0")
	s.exec(put(3, "now()"))
	r.poll()
	if r.sameAs(s); r.lost != 1 {
		t.Errorf("lost %d times, expected once", r.lost)
	}
}
