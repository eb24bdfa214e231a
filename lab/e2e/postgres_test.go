package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
)

// The pooler and the database go away and come back, in good order and not.
func TestRestartsOfThePoolerAndTheDatabaseAreWaitedOut(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(40)})
	s.fake.StartTraffic(40)
	p := s.spawn("run")
	p.isReady()
	for name, restart := range map[string]func() error{
		"pooler":   func() error { return s.pgbouncer.Restart(t.Context()) },
		"database": func() error { return s.postgres.Restart(t.Context()) },
		"crash": func() error {
			if err := s.postgres.Kill(); err != nil {
				return err
			}
			return s.postgres.Start(t.Context())
		},
	} {
		s.changes(60)
		if err := restart(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	s.changes(60)
	s.quiet()
	p.isReady()
}

// Columns come, go, and change their type. When one goes that storestream needs, storestream names it; then
// it comes back.
func TestATableThatIsAlteredWhileStorestreamRunsIsReadOn(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(41)})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	alter := func(sql string) {
		t.Helper()
		if err := s.fake.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"ALTER TABLE orders ADD COLUMN note text DEFAULT 'x'",
		"ALTER TABLE order_items ALTER COLUMN quantity TYPE int4",
		"ALTER TABLE orders DROP COLUMN note", "ALTER TABLE orders ALTER COLUMN total_amount TYPE text",
		"ALTER TABLE orders ALTER COLUMN updated_at TYPE timestamp USING updated_at AT TIME ZONE 'UTC'",
	} {
		alter(sql)
		s.changes(60)
	}
	s.fake.StartTraffic(0)
	alter("ALTER TABLE orders RENAME COLUMN status TO state")
	p.says(`has no column status any more`)
	alter("ALTER TABLE orders RENAME COLUMN state TO status")
	p.stop() // the next source looks at the table anew at once; this one would within a minute
	s.spawn("run")
	// what was read without it
	if _, _, err := s.fake.BulkUpdate(context.Background(), storefake.Orders, 1, 1<<40); err != nil {
		t.Fatal(err)
	}
	s.converge()
}

// Transactions that are open for longer than the overlap, and commit in another order than they began.
func TestTransactionsThatCommitLateAreAllPublished(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(42)})
	s.fake.StartTraffic(50)
	p := s.spawn("run")
	p.isReady()
	ctx := context.Background()
	var open []*storefake.Tx
	for n := range int64(3) {
		tx := s.fake.Begin()
		if err := tx.Update(ctx, storefake.Orders, 10+n, func(r storefake.Row) {
			r["user_id"] = n +
				1
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Insert(ctx, storefake.OrderItems, storefake.Row{"order_id": 10 + n,
			"quantity": int64(1)}); err != nil {
			t.Fatal(err)
		}
		open = append(open, tx)
		s.changes(30)
	}
	s.changes(250) // overlap and more
	for _, n := range []int{1, 2, 0} {
		if err := open[n].Commit(ctx); err != nil {
			t.Fatal(err)
		}
		s.changes(100)
	}
	s.quiet()
}

// updated_at goes back, is null, or lies in the far future.
func TestStrangeTimesOfUpdateStopNothing(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(43)})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	ctx := context.Background()
	set := func(id int64, at time.Time) {
		t.Helper()
		if err := s.fake.SetUpdatedAt(ctx, storefake.Orders, id, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if err := s.fake.Touch(ctx, storefake.Orders, 20); err != nil {
		t.Fatal(err)
	}
	s.changes(60)
	set(21, now.Add(40*365*24*time.Hour))
	set(22, now.Add(2*time.Hour))
	set(23, time.Time{})
	s.changes(60)
	p.stop() // who takes over knows the rows of the future
	s.spawn("run")
	s.changes(60)
	set(20, time.Now().Add(-300*time.Millisecond)) // back, but not behind what is settled
	set(23, time.Now())
	s.fake.StartTraffic(0)
	for _, resource := range storefake.Names() {
		s.becomes(resource, false)
	}
	set(22, time.Now()) // two hours back: shown twice, an overlap apart, it is published
	s.fake.StartTraffic(10)
	eventually(t, "the row that left the future", func() (bool, string) {
		found := s.differences(storefake.Orders, s.topic(storefake.Orders))
		return !strings.Contains(strings.Join(found, ";"), "orders 22:"), summary(found)
	})
	s.fake.StartTraffic(0)
	s.converge()
}

// Polls reach back behind the newest row that they know. A row that changes there is published, whatever came
// after it. The other rows are neither repeated nor read again.
func TestWhatChangesWithinTheOverlapIsPublishedAndTheRestIsNotRepeated(t *testing.T) {
	t.Parallel()
	// So long that all changes of this test fall within it, on a slow machine too.
	s := start(t, setup{yaml: resources("2m"), fake: smallShop(47)})
	p := s.spawn("run")
	p.isReady()
	before := len(s.topic(storefake.Orders))
	read := p.metric("storestream_rows_read_total", storefake.Orders)
	published := func(n int) {
		t.Helper()
		eventually(t, "what changed", func() (bool, string) {
			got := len(s.topic(storefake.Orders)) - before
			return got == n, fmt.Sprintf("%d records more, expected %d", got, n)
		})
	}
	set := func(id int64, at time.Time) {
		t.Helper()
		if err := s.fake.SetUpdatedAt(context.Background(), storefake.Orders, id, at); err != nil {
			t.Fatal(err)
		}
	}
	newest := time.Now()
	set(20, newest)
	published(1)
	for i := range int64(5) {
		set(21+i, newest.Add(-time.Duration(i+1)*10*time.Millisecond))
		published(int(i) + 2)
	}
	polls := p.metric("storestream_polls_total", storefake.Orders, `outcome="ok"`)
	eventually(t, "more polls", func() (bool, string) {
		n := p.metric("storestream_polls_total", storefake.Orders, `outcome="ok"`) - polls
		return n >= 5, fmt.Sprint(n)
	})
	published(6)
	if n := p.metric("storestream_rows_read_total", storefake.Orders) - read; n < 6 || n > 12 {
		t.Errorf("%v rows were read for 6 changes, expected each once or twice", n)
	}
	s.converge()
}

// One statement gives 20,000 rows the same updated_at, and storestream is killed while it writes them, twice.
func TestABulkUpdateWithACrashInTheMiddleIsPublishedOnce(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	fake := storefake.Config{Seed: 44, Size: storefake.Size{Users: 500, Orders: 20_000, Products: 200}}
	s := start(t, setup{yaml: quick, fake: fake})
	p := s.spawn("run")
	p.isReady()
	first := len(s.topic(storefake.Orders))
	written := func() (end int64) {
		ends, err := s.admin().ListEndOffsets(context.Background(), s.prefix+"orders")
		if err != nil {
			t.Fatal(err)
		}
		ends.Each(func(o kadm.ListedOffset) { end += o.Offset })
		return end
	}
	was := written()
	_, rows, err := s.fake.BulkUpdate(context.Background(), storefake.Orders, 1, 20_000)
	if err != nil || rows < 20_000 {
		t.Fatal(rows, err)
	}
	for range 2 {
		eventually(t, "some of it is written", func() (bool, string) { return written() > was+10, "" })
		p.kill()
		t.Logf("killed with %d of %d rows written, %d of them committed", written()-was, rows,
			len(s.read(s.prefix+"orders"))-first)
		was = written()
		p = s.spawn("run")
		if len(s.read(s.prefix+"orders"))-first >= rows {
			break
		}
	}
	s.quiet()
	if n := len(s.topic(storefake.Orders)) - first; n != rows {
		t.Errorf("%d records for %d rows", n, rows)
	}
}
