package poller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// fewRows is a memory for just so many rows.
func fewRows(n int) func(*Config) {
	return func(c *Config) { c.Memory = memoryFor(n) }
}

// memoryFor is the least memory that holds n rows: 20 bytes each, with 15 of 16 places in use.
func memoryFor(n int) int { return (n*16 + 14) / 15 * 20 }

// blocked is the error that a poll ends with.
func (s *shop) blocked() *BlockedError {
	s.t.Helper()
	err := s.work()
	var blocked *BlockedError
	if !errors.As(err, &blocked) {
		s.t.Fatalf("the poll ends with %v, expected a BlockedError", err)
	}
	return blocked
}

// Settled stands still while more rows change than fit. Nothing that could not be remembered is published,
// and so nothing twice; when settled moves the rest follows without anybody's help.
func TestAFullMemoryHoldsAndGoesOnByItself(t *testing.T) {
	s := openShop(t, 0, fewRows(20))
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(50) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	for range 3 {
		blocked := s.blocked()
		for _, says := range []string{"poll.memory is full: 20 rows", "raise poll.memory", s.settles.String()} {
			if !strings.Contains(blocked.What, says) {
				t.Errorf("the error does not say %q: %s", says, blocked.What)
			}
		}
		if len(s.topic) != 20 {
			t.Fatalf("%d records, expected the 20 rows that fit", len(s.topic))
		}
	}
	s.rows[3] = s.row(3, 3100*time.Millisecond, 2) // a known row needs no room
	_ = s.blocked()
	s.wants(s.rows[3])
	if n := testutil.ToFloat64(s.metrics.Resource("orders").DedupFull); n != 4 {
		t.Errorf("%v polls blocked by the metric", n)
	}

	for n := 0; len(s.topic) < 51; n++ { // settling is no longer delayed
		s.settles = s.settles.Add(10 * time.Second)
		if _ = s.work(); n > 100 {
			t.Fatalf("%d records", len(s.topic))
		}
	}
	s.poll()
	for _, row := range s.rows {
		s.wants(row)
	}
	if len(s.topic) != 51 {
		t.Errorf("%d records of 51 versions", len(s.topic))
	}
}

// A late commit brings a row before all those that fill the memory. Once that much is settled, it is
// published.
func TestARowThatSettledPassesNeedsNoRoomInAFullMemory(t *testing.T) {
	s := openShop(t, 0, fewRows(20))
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(50) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	_ = s.blocked()
	late := s.row(-1, -time.Second, 1)
	publish := func(settled schemas.Instant) error {
		b := Batch{Settled: settled}
		late.put(&b)
		return s.poller.publish(one(b))
	}
	for _, settled := range []schemas.Instant{late.updatedAt, late.updatedAt + 300} { // the same millisecond
		if publish(settled) == nil {
			t.Error("a row is published that nothing remembers, and settled has not passed it")
		}
		if at := s.poller.state.mark.Settled; at > late.updatedAt {
			t.Errorf("settled is %s, and a row of %s is not published", at, late.updatedAt)
		}
	}
	if err := publish(schemas.InstantOf(noon.Add(-time.Second / 2))); err != nil {
		t.Error(err)
	}
	s.wants(late)
	if len(s.topic) != 21 {
		t.Errorf("%d records, expected 20 and the late one", len(s.topic))
	}
}

// A successor with less memory than it takes publishes nothing that it does not know, and says how much it
// takes.
func TestATakeoverThatCannotRestoreEverythingHoldsAndSaysHowMuchItTakes(t *testing.T) {
	s := openShop(t, 0, nil)
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(50) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	s.poll()
	s.config.Memory = memoryFor(20)
	s.takeOver()
	for _, says := range []string{"too small to go on", "to 1MiB"} {
		if what := s.blocked().What; !strings.Contains(what, says) {
			t.Error(what)
		}
	}
	if err := s.poller.writer.commit(watermark.Transaction{}); err != nil {
		t.Fatal(err) // as when it stops
	}
	s.config.Memory = 1 << 20
	s.takeOver()
	s.poll()
	if len(s.topic) != 50 {
		t.Errorf("%d records of 50 versions", len(s.topic))
	}
}

// When settling is no longer delayed, such a successor goes on by itself: what it knows lets settled move,
// and with each takeover there is less to restore.
func TestATakeoverThatCannotRestoreEverythingGoesOnOnceSettledMoves(t *testing.T) {
	s := openShop(t, 0, nil)
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(50) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	s.poll()
	s.config.Memory = memoryFor(20)
	s.takeOver()
	_ = s.blocked()
	s.settles = schemas.InstantOf(noon.Add(time.Hour))
	s.rows[50] = s.row(50, time.Minute, 1)
	takeovers := 0
	for ; len(s.topic) < 51; takeovers++ {
		if takeovers > 5 {
			t.Fatalf("%d records after %d takeovers, expected 51", len(s.topic), takeovers)
		}
		s.poll()
	}
	if takeovers < 2 || len(s.topic) != 51 {
		t.Errorf("%d records of 51 versions, %d takeovers", len(s.topic), takeovers)
	}
}

// A transaction that was aborted ends such a poller. A watermark written after it would pass over its rows.
func TestAnAbortedTransactionIsTheLastOfATakeoverThatCouldNotRestoreEverything(t *testing.T) {
	s := openShop(t, 0, nil)
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(50) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	s.poll()
	s.config.Memory = memoryFor(20)
	aborted := false
	s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
		if !aborted && len(tx.Rows) > 0 {
			aborted = true
			return errAborted
		}
		return s.publish(ctx, tx)
	}
	s.takeOver()
	s.rows[3] = s.row(3, 3100*time.Millisecond, 2)
	s.settles = schemas.InstantOf(noon.Add(time.Hour))
	if err := s.work(); !errors.Is(err, errAborted) {
		t.Fatalf("the poll ends with %v", err)
	}
	for range 5 {
		s.takeOver()
		_ = s.work()
	}
	s.wants(s.rows[3])
}

// A source goes on behind the batch with Done, so it has to hear that this was not published.
func TestASourceHearsThatItsLastBatchWasNotPublished(t *testing.T) {
	s := openShop(t, 0, fewRows(3))
	for id := range int64(10) {
		s.rows[id] = s.row(id, 0, 1)
	}
	_ = s.blocked()
	if s.emitted == nil {
		t.Error("the source could go on behind its last batch")
	}
}

// One row of the year 9999 would make every takeover read back to the day of its writing.
func TestARowStampedFarAheadPinsNoTakeover(t *testing.T) {
	s := openShop(t, 3, nil)
	far, soon := s.row(7, 0, 1), s.row(8, time.Minute, 1)
	far.updatedAt = schemas.MaxInstant.Add(-time.Hour)
	s.rows[7], s.rows[8] = far, soon
	s.poll()
	if s.mark.DedupFrom > s.now {
		t.Errorf("dedup_from is %s: the row of the next minute was written at %s", s.mark.DedupFrom, s.now)
	}
	for range 10 {
		s.now = s.now.Add(30 * 24 * time.Hour)
		s.poll()
	}
	if back := s.now.Sub(s.mark.DedupFrom); back > time.Hour {
		t.Errorf("a takeover reads back %s, to %s", back, s.mark.DedupFrom)
	}
	records := len(s.topic)
	s.takeOver()
	s.poll()
	if len(s.topic) != records {
		t.Errorf("the takeover published %+v again", s.topic[records:])
	}
	far.content, far.updatedAt = 2, schemas.MaxInstant
	s.rows[7] = far
	s.poll()
	s.takeOver()
	s.poll()
	s.wants(s.rows[7])
	if len(s.topic) != records+1 {
		t.Errorf("%d records, expected one of each version: %d", len(s.topic), records+1)
	}
	delete(s.rows, 7)
	s.poller.cfg.Sweep.Tombstone = true
	s.config.Sweep.Tombstone = true
	if s.sweep(); len(s.mark.Future) != 0 {
		t.Errorf("a deleted row is kept in the watermark: %+v", s.mark.Future)
	}
}

func TestMoreFarRowsThanTheWatermarkKeepsAreReadBack(t *testing.T) {
	t.Run("days", func(t *testing.T) { playFarRows(t, schemas.InstantOf(noon.Add(1000*time.Hour))) })
	t.Run("millennia", func(t *testing.T) { playFarRows(t, schemas.MaxInstant) })
}

func playFarRows(t *testing.T, updatedAt schemas.Instant) {
	t.Helper()
	s := openShop(t, 0, nil)
	for id := range int64(maxFarRows + 10) {
		row := s.row(id, 0, 1)
		row.updatedAt = updatedAt
		s.rows[id] = row
	}
	s.poll()
	s.now = s.now.Add(100 * time.Hour)
	s.poll()
	if len(s.mark.Future) != maxFarRows {
		t.Errorf("%d rows in the watermark", len(s.mark.Future))
	}
	s.takeOver()
	s.poll()
	if len(s.topic) != maxFarRows+10 {
		t.Errorf("%d records of %d rows", len(s.topic), maxFarRows+10)
	}
}

// The topic keeps milliseconds of an updated_at. Settled may stand at the microsecond of the very row.
func TestARowAheadOfTheClockIsReadBackWhereSettledStandsWithinItsMillisecond(t *testing.T) {
	s := newShop(t, noon)
	ahead := s.row(1, 5*time.Minute+300*time.Microsecond, 1)
	s.rows[1] = ahead
	s.takeOver()
	s.poll()
	s.settles = ahead.updatedAt
	for range 3 { // the second takeover knows of the row what the first one read back
		s.poll()
		s.takeOver()
	}
	s.poll()
	if len(s.topic) != 1 {
		t.Errorf("%d records of one version", len(s.topic))
	}
}

// A replay sends a table again that is larger than the memory: of a source that catches up, what was
// published before the replay need not be remembered. In the middle another owner goes on.
func TestAReplayOfMoreRowsThanFitSendsEachOnceMore(t *testing.T) {
	s := newShop(t, noon)
	s.config.CatchesUp = true
	for id := range int64(100) {
		s.rows[id] = s.row(id, time.Duration(id-200)*time.Minute, 1)
	}
	s.takeOver()
	s.poll()
	s.config.Memory = memoryFor(20)
	s.takeOver()
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap)) // by row
	to := schemas.MinInstant
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	s.poll() // accepts it
	publish := s.publishes
	s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
		if len(s.topic) > 150 {
			return errors.New("the broker is away")
		}
		return publish(ctx, tx)
	}
	s.takeOver()
	if err := s.work(); err == nil {
		t.Fatal("the replay was not interrupted")
	}
	s.publishes = publish
	for range 2 {
		s.takeOver()
		s.poll()
		s.now = s.now.Add(idleWrite)
		s.poll()
	}
	if r := s.result(); r == nil || r.Rows != 100 || r.Ended < r.Began {
		t.Errorf("it is said to have come to %+v", r)
	}
	if s.mark.Replay != nil || len(s.topic) != 200 {
		t.Errorf("%d records of 100 rows and a replay of them, %+v", len(s.topic), s.mark.Replay)
	}
	for _, row := range s.rows {
		s.wants(row)
	}
}

// Of rows that are deleted a replay meets no other version: what is remembered of them gives way to others.
func TestWhatAReplayDoesNotMeetGivesWay(t *testing.T) {
	s := openShop(t, 0, func(c *Config) { c.CatchesUp, c.Memory = true, memoryFor(20) })
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(20) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	s.poll()
	to := schemas.InstantOf(noon.Add(-shopOverlap))
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	s.poll() // accepts it
	for id := range int64(10) {
		delete(s.rows, id)
		s.rows[id+100] = s.row(id+100, time.Minute, 1)
	}
	s.poll()
	for _, row := range s.rows {
		s.wants(row)
	}
	if len(s.topic) != 40 {
		t.Errorf("%d records of 20 rows and 20 of the replay", len(s.topic))
	}
}

// In a replay what was published before it still tells an older state that a lagging source shows, also what
// settled had passed long ago.
func TestAReplayDoesNotPublishAnOlderStateOfWhatSettledHadPassed(t *testing.T) {
	s := newShop(t, noon)
	s.rows[1] = s.row(1, -30*time.Minute, 2)
	s.takeOver()
	s.poll()
	to := schemas.InstantOf(noon.Add(-time.Hour))
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	s.poll() // accepts it
	newest := s.rows[1]
	s.rows[1] = s.row(1, -40*time.Minute, 1)
	if s.poll(); len(s.topic) != 1 {
		t.Errorf("an older state was published: %+v", s.topic[1].row)
	}
	s.rows[1] = newest
	s.poll()
	s.wants(newest)
}

// While a row is deferred the floor stands still. So a pass that has forgotten final rows behind its cursor
// keeps the cursor when it ends, or they would be met again.
func TestAPassThatHasForgottenRowsAndHoldsOneBackKeepsItsCursor(t *testing.T) {
	s := openShop(t, 0, nil)
	p := s.poller.state
	publish := func(b Batch) {
		t.Helper()
		b.Settled = schemas.MinInstant
		if err := s.poller.publish(one(b)); err != nil {
			t.Fatal(err)
		}
	}
	known, final := s.row(1, time.Minute, 2), s.row(2, time.Minute, 1)
	publish(Batch{Rows: []schemas.Record{known.record()}})
	cursor := &watermark.Cursor{UpdatedAt: final.updatedAt, ID: 2}
	publish(Batch{Rows: []schemas.Record{final.record()}, Final: []bool{true}, Cursor: cursor})
	if _, known := p.dedup.rows.Get(2); known {
		t.Error("a final row behind the cursor is remembered")
	}
	older := s.row(1, 0, 1)
	publish(Batch{Rows: []schemas.Record{older.record()},
		Done: &Done{Started: s.now, Complete: true, Floor: &watermark.Floor{Snapshot: "9:9:"}}})
	if p.mark.Floor != nil || p.mark.Cursor != cursor {
		t.Errorf("the next pass begins at cursor %+v with floor %+v", p.mark.Cursor, p.mark.Floor)
	}
}

// No watermark lies behind a final row while another row is deferred, so it needs room like any other.
func TestFinalRowsNeedRoomWhileARowIsDeferred(t *testing.T) {
	s := openShop(t, 0, fewRows(20))
	known := s.row(1000, 2*time.Minute, 2)
	batch := Batch{Settled: schemas.MinInstant, Rows: []schemas.Record{known.record()}}
	if err := s.poller.publish(one(batch)); err != nil {
		t.Fatal(err)
	}
	older := s.row(1000, time.Minute, 1)
	batch = Batch{Settled: schemas.MinInstant, Rows: []schemas.Record{older.record()}, Final: []bool{true}}
	for n := range 100 {
		row := s.row(int64(n), 0, 1)
		batch.Rows, batch.Final = append(batch.Rows, row.record()), append(batch.Final, true)
	}
	err := s.poller.publish(one(batch))
	if err == nil || !strings.Contains(err.Error(), "poll.memory is full") {
		t.Errorf("%d rows are remembered: %v", s.poller.state.dedup.rows.Len(), err)
	}
}

// The transactions of a batch may take long. A record carries the time of its writing if updated_at is later,
// and the watermark has to say from when on a successor reads the topic.
func TestARowIsReadBackIfTheClockStepsBackBetweenTwoTransactionsOfABatch(t *testing.T) {
	s := openShop(t, 0, nil)
	s.partitions, s.maxRows = 2, func() int { return 1 }
	s.rows[1], s.rows[2] = s.row(1, 0, 1), s.row(2, 0, 1)
	s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
		err := s.publish(ctx, tx)
		if len(tx.Rows) > 0 {
			s.skew = -2 * time.Hour
		}
		return err
	}
	s.poll()
	s.takeOver()
	s.poll()
	if len(s.topic) != 2 {
		t.Errorf("%d records of two rows", len(s.topic))
	}
}

// The source has shown the row before the transactions of its batch, however long those take.
func TestAnOlderStateIsNotConfirmedByTheTimeThatACommitTakes(t *testing.T) {
	s := openShop(t, 0, nil)
	s.maxRows = func() int { return 1 }
	newer, older := s.row(2, 0, 2), s.row(2, -time.Second, 1)
	s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
		if len(tx.Rows) > 0 {
			s.now = s.now.Add(shopOverlap)
		}
		return s.publish(ctx, tx)
	}
	for i, rows := range [][]row{{newer}, {older}, {s.row(1, 0, 1), older}} {
		b := Batch{Settled: schemas.MinInstant}
		for _, r := range rows {
			r.put(&b)
		}
		if err := s.poller.publish(one(b)); err != nil {
			t.Fatal(i, err)
		}
	}
	s.wants(newer)
}

// The last transaction of a replay ends it, also one without rows, and counts its own.
func TestAReplaySaysAtOnceThatItIsOver(t *testing.T) {
	s := openShop(t, 10, nil)
	for _, settles := range []schemas.Instant{0, s.now.Add(-shopOverlap)} { // in one batch, then row by row
		s.settles = settles
		id := s.ask(watermark.Request{Kind: watermark.Reset, To: new(schemas.MinInstant)})
		s.poll() // accepts it
		s.poll()
		if r := s.result(); s.mark.Replay != nil || r == nil || r.Request != id || r.Rows != 10 {
			t.Errorf("replay %+v is in hand; it came to %+v", s.mark.Replay, r)
		}
	}
}
