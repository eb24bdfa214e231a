package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// ledger is a topic in memory that the real poller fills from a shop's table, one owner after the other. It
// checks the promise: what settled has passed is there, and no version is published twice.
type ledger struct {
	t         *testing.T
	shop      *shop
	config    postgres.SourceConfig
	maxRows   int
	mark      watermark.Watermark
	records   []watermark.Published
	published map[int64]map[version]int // how often, by id
	newest    map[int64]version
	letters   map[string]uint64
	asked     []watermark.Request
	replays   int // each version may be published once more
	commits   int
	restored  int // records that the last takeover read back
	// blocks are those at which the load stood, -1 behind it.
	blocks []int64
	// before is called before each commit. Its error refuses it, as a crash does.
	before func(watermark.Transaction) error
}

type version struct {
	at   schemas.Instant
	hash uint64
}

func openLedger(s *shop, c postgres.SourceConfig) *ledger {
	c.Resource, c.Overlap = orders, cmp.Or(c.Overlap, 100*time.Millisecond)
	c.Start = cmp.Or(c.Start, schemas.MinInstant)
	return &ledger{t: s.t, shop: s, config: c, maxRows: 150,
		mark: watermark.New("orders"), newest: map[int64]version{},
		published: map[int64]map[version]int{}, letters: map[string]uint64{}}
}

func (l *ledger) Watermark() watermark.Watermark { return l.mark }

func (l *ledger) DeadLetters() map[string]uint64 { return l.letters }

func (l *ledger) MaxRows() int { return l.maxRows }

func (l *ledger) MaxRecordBytes() int { return 1 << 20 }

func (l *ledger) EndOffsets(context.Context) ([]int64, error) {
	return []int64{int64(len(l.records))}, nil
}

func (l *ledger) Changed() <-chan struct{} { return nil }

func (l *ledger) After(_ string, id int64, _ string) []watermark.Request {
	for i, r := range l.asked {
		if r.ID > id {
			return l.asked[i:]
		}
	}
	return nil
}

func (l *ledger) Commit(_ context.Context, tx watermark.Transaction) error {
	if l.before != nil {
		if err := l.before(tx); err != nil {
			return err
		}
	}
	wall := schemas.InstantOf(time.Now())
	for _, row := range tx.Rows {
		v := version{row.UpdatedAt, schemas.Hash(row.Value)}
		if l.published[row.ID] == nil {
			l.published[row.ID] = map[version]int{}
		}
		if l.published[row.ID][v]++; l.published[row.ID][v] > 1+l.replays {
			l.t.Errorf("order %d at %s was published %d times", row.ID, v.at, l.published[row.ID][v])
		}
		l.newest[row.ID] = v
		millis := func(i schemas.Instant) schemas.Instant { return schemas.InstantOfMillis(i.Millis()) }
		l.records = append(l.records, watermark.Published{ID: row.ID, UpdatedAt: millis(row.UpdatedAt),
			Hash:   v.hash,
			Offset: int64(len(l.records)), Time: millis(min(row.UpdatedAt, wall))})
	}
	for _, letter := range tx.DeadLetters {
		l.letters[letter.Key] = watermark.DeadLetterHash(letter.Row)
	}
	settled := l.mark.Settled
	l.mark = tx.Watermark
	block := int64(-1)
	if l.mark.Load != nil {
		block = l.mark.Load.Block
	}
	l.blocks = append(l.blocks, block)
	if l.mark.Settled > settled {
		l.passed()
	}
	l.commits++
	return nil
}

// passed checks that the topic has all rows that settled has passed.
func (l *ledger) passed() {
	l.t.Helper()
	const sql = "SELECT id, updated_at FROM orders WHERE updated_at < $1"
	rows, err := l.shop.admin.Query(l.t.Context(), sql, l.mark.Settled.Time())
	if err != nil {
		l.t.Fatal(err)
	}
	for rows.Next() {
		var id int64
		var at time.Time
		if err := rows.Scan(&id, &at); err != nil {
			l.t.Fatal(err)
		}
		_, letter := l.letters[fmt.Sprintf("orders/%d", id)]
		if v := l.newest[id]; !letter && v.at != schemas.InstantOf(at) {
			l.t.Errorf("settled is %s: order %d at %s is not in the topic, which has %s", l.mark.Settled, id, at,
				v.at)
		}
	}
	if rows.Err() != nil {
		l.t.Fatal(rows.Err())
	}
}

// own lets one owner publish until done, for at most a minute, or until it fails. A takeover that a poller
// asks for is another owner.
func (l *ledger) own(done func() bool) error {
	l.t.Helper()
	db, err := postgres.Open(rotation.Literal(pooler.DSN(role, password, l.shop.name)), nil)
	if l.shop.server != server {
		db, err = postgres.Open(rotation.Literal(l.shop.server.DSN(role, password, l.shop.name)), nil)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	for end := time.Now().Add(time.Minute); ; {
		m := metrics.New(prometheus.NewRegistry()).Resource("orders")
		c := l.config
		c.Metrics = m
		ctx, stop := context.WithCancelCause(l.t.Context())
		p := poller.New(poller.Config{
			Settings: poller.Settings{Resource: orders, SourceName: "postgres", Interval: time.Millisecond,
				Overlap: c.Overlap, Start: c.Start, Memory: 1 << 20, CatchesUp: true,
				Eager: true},
			Clock: func() poller.Moment {
				if done() {
					stop(poller.ErrStopping)
				} else if time.Now().After(end) {
					stop(fmt.Errorf("not done: %+v, %+v", l.mark, l.mark.Trouble))
				}
				return poller.Moment{Now: time.Now(), Wall: schemas.InstantOf(time.Now())}
			},
			Source: postgres.NewSource(db, c), Session: l, Requests: l, Metrics: m, Log: zap.NewNop(),
			Sweep:   poller.SweepConfig{Turn: make(chan struct{}, 1), Interval: 24 * time.Hour},
			Renewed: func() <-chan struct{} { return nil }, Hide: func(text string) string { return text },
			Doing: func(string) {}, Published: func([]schemas.Record, []int64) {}})
		l.restore(p)
		err := p.Run(ctx)
		stop(nil)
		p.Close()
		if !errors.Is(err, poller.ErrTakeover) {
			return err
		}
	}
}

// restore gives the poller the records that the producer would.
func (l *ledger) restore(p *poller.Poller) {
	l.restored = 0
	for i, r := range l.records {
		if l.restored > 0 || r.Time.Millis() >= l.mark.DedupFrom.Millis() {
			r.Old = l.mark.Replay != nil && int64(i) < l.mark.Replay.Ends[0]
			p.RestorePublished(r)
			l.restored++
		}
	}
}

// complete publishes until settled has passed all rows that are there now.
func (l *ledger) complete() {
	l.t.Helper()
	now := l.shop.instant("SELECT clock_timestamp()")
	l.before = nil
	err := l.own(func() bool { return l.mark.Settled > now && l.mark.AsOf > schemas.MinInstant })
	if err != nil {
		l.t.Fatal(err)
	}
	if l.mark.Load != nil || l.mark.Replay != nil {
		l.t.Errorf("all is settled, and the watermark has load %+v, replay %+v", l.mark.Load, l.mark.Replay)
	}
}

// loads reports whether a load is in hand, n commits or more after it began.
func (l *ledger) loads(n int) bool {
	return l.mark.Load != nil && l.mark.Load.Block > 0 && l.commits >= n
}

// scattered makes 6,000 orders, some in each block, in no order of time. Each block has room for more.
func scattered(s *shop) {
	s.exec("ALTER TABLE orders SET (fillfactor = 20)")
	s.exec(strings.Replace(fmt.Sprintf(manyOrders, 6000), ") x", ") x ORDER BY hashint8(i)", 1))
}

// few makes the load take many transactions.
var few = postgres.SourceConfig{MaxRows: 100}

func TestALoadReadsTheBlocksInTurnAndRemembersNothing(t *testing.T) {
	s := openShop(t, ordersTable)
	scattered(s)
	s.exec("INSERT INTO orders (id) VALUES (9001)") // without updated_at
	s.exec("UPDATE orders SET updated_at = '2999-01-01' WHERE id = 3000")
	l := openLedger(s, few)
	l.before = func(tx watermark.Transaction) error {
		if m := tx.Watermark; m.Load != nil && m.Settled != schemas.MinInstant {
			t.Errorf("settled is %s while the load is at block %d", m.Settled, m.Load.Block)
		}
		if m := tx.Watermark; m.Load != nil && m.DedupFrom != schemas.MaxInstant {
			t.Errorf("at block %d a takeover would read back rows from %s on", m.Load.Block, m.DedupFrom)
		}
		return nil
	}
	if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for i, block := range l.blocks {
		if steps++; block < 0 {
			break
		}
		if i > 0 && block < l.blocks[i-1] {
			t.Errorf("the load went back: %d", l.blocks[:i+1])
		}
	}
	if len(l.newest) != 6000 || steps < 20 || len(l.letters) != 1 {
		t.Errorf("%d orders in %d steps, dead letters %v", len(l.newest), steps, l.letters)
	}
	l.complete()
	if err := l.own(func() bool { return true }); err != nil || l.restored != 0 {
		t.Errorf("a takeover after the load read back %d records: %v", l.restored, err)
	}
}

// A successor has nothing to find among the records of a load, whenever its owner died.
func TestARangeOfBlocksIsPublishedInOneTransaction(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(`INSERT INTO orders (id, created_at, updated_at) SELECT i, t, t FROM generate_series(1, 100000) i,
		LATERAL (SELECT now() - interval '1 day' + i * interval '1 ms' AS t) x`)
	s.exec("DELETE FROM orders WHERE ctid < '(64,0)'") // so the load takes four times as many blocks then
	rows := query[int](s, "SELECT count(*) FROM orders")
	l, most := openLedger(s, postgres.SourceConfig{}), 0
	l.maxRows = 20_000 // as the producer's
	l.before = func(tx watermark.Transaction) error {
		if most = max(most, len(tx.Rows)); tx.Watermark.DedupFrom != schemas.MaxInstant {
			t.Errorf("a takeover would read back rows from %s on; load %+v", tx.Watermark.DedupFrom, tx.Watermark.Load)
		}
		return nil
	}
	if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil {
		t.Fatal(err)
	}
	if most < 10_000 || len(l.newest) != rows {
		t.Errorf("%d orders, at most %d in a transaction", len(l.newest), most)
	}
}

// Rows move from blocks that were not read to others, and from blocks that were. The owner dies after each
// few commits.
func TestALoadGoesOnWhereItsOwnerDiedWhileRowsMove(t *testing.T) {
	s := openShop(t, ordersTable)
	scattered(s)
	l := openLedger(s, few)
	l.config.Overlap = time.Second
	random := rand.New(rand.NewPCG(1, 2))
	owners, at := 0, int64(0)
	for l.mark.AsOf == schemas.MinInstant {
		if owners++; l.mark.Load != nil && l.mark.Load.Block < at {
			t.Fatalf("owner %d begins at block %d of %d, after %d", owners, l.mark.Load.Block, l.mark.Load.Blocks, at)
		}
		n := 0
		l.before = func(tx watermark.Transaction) error {
			if tx.Watermark.Load != nil {
				at = tx.Watermark.Load.Block
			}
			id := random.IntN(6000) + 1
			s.exec(put(id, "clock_timestamp()"))
			s.exec(put(6001+id, "clock_timestamp()"))
			s.exec(fmt.Sprintf("DELETE FROM orders WHERE id = %d", 20_000+id))
			if n++; n == 4 {
				at = 0
				if l.mark.Load != nil {
					at = l.mark.Load.Block
				}
				return errCrash
			}
			return nil
		}
		if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil &&
			!errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	if owners < 10 {
		t.Errorf("only %d owners", owners)
	}
	l.complete()
}

// Each of these puts the rows into other blocks, or other rows into the blocks, in the middle of a load.
func TestALoadBeginsAgainIfItsTableIsRewritten(t *testing.T) {
	reload := strings.Replace(fmt.Sprintf(manyOrders, 3000), "interval '1 day'", "interval '2 days'", 1)
	for name, sql := range map[string]string{
		"CLUSTER":     "CLUSTER orders USING orders_pkey",
		"VACUUM FULL": "VACUUM FULL orders",
		"TRUNCATE":    "BEGIN; TRUNCATE orders; " + reload + "; COMMIT",
		"ALTER TABLE": "ALTER TABLE orders ALTER id TYPE numeric; ALTER TABLE orders ALTER id TYPE bigint",
		"a swap": `BEGIN; CREATE TABLE other (LIKE orders INCLUDING ALL); INSERT INTO other SELECT * FROM orders
			ORDER BY id DESC; GRANT SELECT ON other TO ` + role + `; DROP TABLE orders;
			ALTER TABLE other RENAME TO orders; COMMIT`,
		"row security": "ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON orders USING (true)",
	} {
		for _, owner := range []string{"the same owner", "a successor"} {
			t.Run(name+", "+owner, func(t *testing.T) {
				s := openShop(t, ordersTable)
				scattered(s)
				l := openLedger(s, few)
				l.inTheMiddle(sql, owner == "a successor")
				l.complete()
			})
		}
	}
}

// Rows of a child lie in blocks of its own.
func TestASuccessorReadsInOrderOfTimeIfTheTableHasNoFloorAnyMore(t *testing.T) {
	s := openShop(t, ordersTable)
	scattered(s)
	l := openLedger(s, few)
	l.inTheMiddle("CREATE TABLE child () INHERITS (orders); "+
		strings.NewReplacer("INTO orders", "INTO child", "SELECT i,", "SELECT 9000 + i,").
			Replace(fmt.Sprintf(manyOrders, 50)), true)
	if l.complete(); len(l.newest) != 6050 {
		t.Errorf("%d orders", len(l.newest))
	}
}

// inTheMiddle publishes all, and executes sql in the middle of the load. crash ends the owner there.
func (l *ledger) inTheMiddle(sql string, crash bool) {
	l.t.Helper()
	executed := false
	l.before = func(watermark.Transaction) error {
		if executed || !l.loads(10) {
			return nil
		}
		l.shop.exec(sql)
		if executed = true; crash {
			return errCrash
		}
		return nil
	}
	err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant })
	if err != nil && !errors.Is(err, errCrash) {
		l.t.Fatal(err)
	}
	if !executed {
		l.t.Fatal("no load was in hand")
	}
}

// The place of a load outlives a server's restart as settled does: rows that were published are not read
// again.
func TestALoadGoesOnAfterTheServersRestart(t *testing.T) {
	t.Parallel()
	s := openShopAlone(t, nil)
	scattered(s)
	l := openLedger(s, few)
	block := int64(0)
	l.before = func(tx watermark.Transaction) error {
		if load := tx.Watermark.Load; load != nil && load.Block < block {
			t.Errorf("the load goes on at block %d, and was at %d", load.Block, block)
		}
		if block == 0 && l.loads(10) {
			block = l.mark.Load.Block
			return errCrash
		}
		return nil
	}
	if err := l.own(func() bool { return false }); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	s.whileDown(func() error { return nil })
	for id := range 200 {
		s.exec(put(30*id+1, "clock_timestamp()"))
	}
	if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil {
		t.Fatal(err)
	}
	if l.mark.Sweep == nil {
		t.Error("no sweep follows")
	}
	l.complete()
}

// A transaction that is older than the load may still write an early stamp into a block that was read.
func TestThereIsNoLoadBesideATransactionThatIsOlder(t *testing.T) {
	s := openShop(t, ordersTable)
	scattered(s)
	w := s.writer()
	run(t, w, "BEGIN")
	run(t, w, put(1, "now()"))
	l := openLedger(s, few)
	if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil {
		t.Fatal(err)
	}
	if l.blocks[0] >= 0 || l.mark.Settled != schemas.MinInstant || len(l.newest) != 6000 {
		t.Errorf("a load was at block %d; settled is %s; %d orders", l.blocks[0], l.mark.Settled, len(l.newest))
	}
	run(t, w, "COMMIT")
	want := s.instant("SELECT updated_at FROM orders WHERE id = 1")
	if err := l.own(func() bool { return l.mark.Settled > want }); err != nil {
		t.Fatal(err)
	}
	if l.newest[1].at != want {
		t.Errorf("order 1 was published at %s, its transaction stamped %s", l.newest[1].at, want)
	}
}

// A replay of all rows is a load, too. A reset in the middle of a load leaves the later rows to the passes.
func TestAReplayIsALoadAndAResetKeepsTheOneInHand(t *testing.T) {
	for name, c := range map[string]struct {
		inHand bool // the load
		back   time.Duration
		again  bool // every row is published again
	}{
		"after the load, of all":          {back: 48 * time.Hour, again: true},
		"in the middle, of all":           {back: 48 * time.Hour, inHand: true},
		"in the middle, of the last rows": {back: 24*time.Hour - 3*time.Second, inHand: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			scattered(s)
			l := openLedger(s, few)
			loaded := func() bool { return l.mark.AsOf > schemas.MinInstant }
			if c.inHand {
				loaded = func() bool { return l.loads(10) }
			}
			if err := l.own(loaded); err != nil {
				t.Fatal(err)
			}
			place, rows := l.mark.Load, l.mark.Rows
			to := s.instant("SELECT min(updated_at) FROM orders").Add(24*time.Hour - c.back)
			l.asked = []watermark.Request{{ID: 1, UID: "a", Resource: "orders", Kind: watermark.Reset, To: &to,
				At: schemas.InstantOf(time.Now())}}
			l.replays, l.blocks = 1, nil
			before := map[int64]version{}
			maps.Copy(before, l.newest)
			n := 0
			l.before = func(watermark.Transaction) error {
				if n++; n == 12 {
					return errCrash
				}
				return nil
			}
			if err := l.own(func() bool { return false }); !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			if at := l.mark.Load; at == nil || place != nil && c.back < 24*time.Hour && at.Block < place.Block {
				t.Errorf("the load is at %+v, and was at %+v", at, place)
			}
			l.complete()
			if c.again && l.mark.Rows != rows+6000 {
				t.Errorf("the replay published %d rows", l.mark.Rows-rows)
			}
			for id, v := range l.newest {
				times, want := l.published[id][v], 1
				if before[id] == v && v.at >= to {
					want = 2
				}
				if times != want {
					t.Errorf("order %d at %s was published %d times, the reset is to %s", id, v.at, times, to)
				}
			}
		})
	}
}

// Rows of a kilobyte on average, and some blocks that are more than a chunk: their texts lie out of line.
func TestABlockOfMoreThanAChunkIsReadInParts(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec("ALTER TABLE orders ALTER status SET STORAGE EXTERNAL")
	scattered(s)
	s.exec("UPDATE orders SET status = repeat('x', 100000) WHERE id BETWEEN 1001 AND 1060")
	s.exec("CLUSTER orders USING orders_pkey")
	l := openLedger(s, postgres.SourceConfig{})
	parts := 0
	l.before = func(tx watermark.Transaction) error {
		if load := tx.Watermark.Load; load != nil && load.After != nil {
			if parts++; parts%2 == 0 {
				return errCrash
			}
		}
		return nil
	}
	for l.mark.AsOf == schemas.MinInstant {
		err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant })
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	if l.complete(); parts == 0 || len(l.newest) != 6000 {
		t.Errorf("%d parts of blocks, %d orders", parts, len(l.newest))
	}
}

// Rows that the database cannot send are found block by block, and the others are published.
func TestALoadSetsRowsAsideThatTheDatabaseCannotRead(t *testing.T) {
	s := openShopEncoded(t, "WIN1252")
	scattered(s)
	s.exec("UPDATE orders SET status = chr(129) WHERE id IN (7, 3001, 3002)")
	l := openLedger(s, postgres.SourceConfig{MaxRows: 1000})
	if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil {
		t.Fatal(err)
	}
	if slices.Max(l.blocks) < 0 || len(l.newest) != 5997 || len(l.letters) != 3 {
		t.Errorf("the load was at %d; %d orders, dead letters %v", slices.Max(l.blocks), len(l.newest), l.letters)
	}
}

// A load does not pass rows that are too many to be bad by accident. The rows behind them, and those written
// meanwhile, are published once.
func TestALoadStaysBeforeABadChunk(t *testing.T) {
	s := openShop(t, ordersTable)
	scattered(s)
	const bad = "ctid >= '(100,0)' AND ctid < '(250,0)'"
	s.exec("CREATE TABLE bad AS SELECT id FROM orders WHERE " + bad)
	s.exec("UPDATE orders SET created_at = NULL WHERE id IN (SELECT id FROM bad)")
	s.exec("CREATE TABLE other AS SELECT * FROM orders ORDER BY CASE WHEN created_at IS NULL THEN 1 " +
		"ELSE id % 2 * 2 END, hashint8(id)") // good rows before the bad ones and behind them
	s.exec("TRUNCATE orders; INSERT INTO orders SELECT * FROM other")
	l := openLedger(s, postgres.SourceConfig{MaxRows: 1000})
	blocked := func() bool { return l.mark.Trouble != nil }
	if err := l.own(blocked); err != nil {
		t.Fatal(err)
	}
	load := l.mark.Load
	if load == nil || load.Block == load.Blocks || l.mark.Settled != schemas.MinInstant {
		t.Errorf("the load stands at %+v, settled %s", load, l.mark.Settled)
	}
	s.exec(put(9001, "clock_timestamp()"))
	if err := l.own(func() bool { return len(l.published[9001]) > 0 }); err != nil {
		t.Fatal(err)
	}
	if l.mark.Settled != schemas.MinInstant || l.mark.Load == nil || *l.mark.Load != *load {
		t.Errorf("the load went on to %+v, settled %s", l.mark.Load, l.mark.Settled)
	}
	s.exec("UPDATE orders SET created_at = now(), updated_at = clock_timestamp() WHERE created_at IS NULL")
	l.complete()
	if len(l.newest) != 6001 {
		t.Errorf("%d orders", len(l.newest))
	}
}

// The server reads no row of a broken page. The other rows are published, and those of the page when it is
// restored.
func TestALoadGoesOnBehindABrokenPage(t *testing.T) {
	t.Parallel()
	s := openShopAlone(t, nil)
	scattered(s)
	s.exec("CHECKPOINT")
	rows := query[int](s, "SELECT count(*) FROM orders WHERE ctid >= '(200,0)' AND ctid < '(201,0)'")
	file := query[string](s, "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('orders')")
	page, garbage := make([]byte, 8192), bytes.Repeat([]byte{0xff}, 8192)
	write := func(b []byte) func() error {
		return func() error {
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.ReadAt(page, 200*8192)
			if len(b) > 0 {
				_, err = f.WriteAt(b, 200*8192)
			}
			return errors.Join(err, f.Close())
		}
	}
	s.whileDown(write(nil))
	whole := slices.Clone(page)
	s.whileDown(write(garbage))
	l := openLedger(s, postgres.SourceConfig{MaxRows: 1000})
	if err := l.own(func() bool { return l.mark.Trouble != nil }); err != nil {
		t.Fatal(err)
	}
	m := l.mark
	if len(l.newest) != 6000-rows || !strings.Contains(m.Trouble.Why, "block 200") ||
		m.Load == nil || m.Load.Block > 200 || m.Settled != schemas.MinInstant {
		t.Errorf("%d orders of %d; load %+v, settled %s, %+v", len(l.newest), 6000-rows, m.Load, m.Settled,
			m.Trouble)
	}
	s.whileDown(write(whole))
	if l.complete(); len(l.newest) != 6000 {
		t.Errorf("%d orders", len(l.newest))
	}
}

// A load asks for the file's number, which every role may see, and its size, which is one question. If it
// may not ask that, or ranges of blocks would cost a read of the table each, the order is (updated_at, id).
func TestWithoutASizeOrRangesOfBlocksThereIsNoLoad(t *testing.T) {
	const revoke = "REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC;"
	for name, c := range map[string]struct {
		sql   string
		loads bool
	}{
		"no right to the number of the file": {fmt.Sprintf(revoke, "pg_relation_filenode(regclass)"), true},
		"no right to the size": {fmt.Sprintf(revoke, "pg_relation_size(regclass)") +
			fmt.Sprintf(revoke, "pg_relation_size(regclass, text)"), false},
		"no ranges": {"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET enable_tidscan = off', " +
			"current_database()); END $$", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			scattered(s)
			s.exec(c.sql)
			l := openLedger(s, few)
			if err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant }); err != nil {
				t.Fatal(err)
			}
			if loaded := slices.Max(l.blocks) >= 0; loaded != c.loads || len(l.newest) != 6000 {
				t.Errorf("a load: %v; %d orders", loaded, len(l.newest))
			}
			l.complete()
		})
	}
}

// Rows without updated_at become dead letters because others are published, also if those were published
// before the owner died.
func TestASuccessorTakesRowsWithoutUpdatedAtForDeadLetters(t *testing.T) {
	s := openShop(t, ordersTable)
	scattered(s)
	s.exec("INSERT INTO orders (id) SELECT 9000 + i FROM generate_series(1, 50) i")
	l := openLedger(s, few)
	l.before = func(tx watermark.Transaction) error {
		if l.mark.Load != nil && l.mark.Load.Block == l.mark.Load.Blocks {
			return errCrash
		}
		return nil
	}
	if err := l.own(func() bool { return false }); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	l.before = nil
	err := l.own(func() bool { return l.mark.AsOf > schemas.MinInstant || l.mark.Trouble != nil })
	if err != nil || l.mark.Trouble.Blocked() || len(l.letters) != 50 {
		t.Errorf("%d dead letters, %+v: %v", len(l.letters), l.mark.Trouble, err)
	}
	l.complete()
}
