package poller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// What comes when there are as many dead letters as there may be is not written, not passed over, and said.
func TestMoreDeadLettersThanAResourceMayHaveHoldIt(t *testing.T) {
	s := openShop(t, 3, nil)
	s.maxRows = func() int { return 100 }
	s.publishes = func(_ context.Context, tx watermark.Transaction) error { return s.commit(tx) }
	s.takeOver()
	s.poller.state.deadLetters.most = 5
	for id := int64(10); id < 20; id++ {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
		if id < 17 {
			bad := s.rows[id]
			bad.bad, bad.nameless = true, id == 10
			s.rows[id] = bad
		}
	}
	for range 2 {
		s.poll()
		s.now = s.now.Add(10 * shopOverlap)
	}
	s.takeOver()
	s.poller.state.deadLetters.most = 5
	s.poll()
	delayed := s.troubled()
	if !strings.Contains(delayed, "more than 5 rows cannot be published") || len(s.letters) != 5 {
		t.Errorf("%d letters, delayed: %s", len(s.letters), delayed)
	}
	if s.mark.Settled > s.rows[15].updatedAt {
		t.Errorf("settled is %s, behind a row that is neither published nor a dead letter", s.mark.Settled)
	}
	if len(s.topic) != 6 {
		t.Errorf("%d records, expected each good row once", len(s.topic))
	}
	if s.sweep(); !strings.Contains(s.mark.Swept.Left, "more than 5 rows cannot be published") {
		t.Errorf("the sweep left %q", s.mark.Swept.Left)
	}
	for id := int64(10); id < 16; id++ { // most are mended
		s.rows[id] = row{id: id, updatedAt: s.now, content: 2}
	}
	s.poll()
	s.poll()
	if delayed := s.troubled(); delayed != "" {
		t.Errorf("delayed says %q still", delayed)
	}
	for id := int64(11); id < 16; id++ {
		s.wants(s.rows[id])
	}
	if len(s.letters) != 2 { // of the one that is left, and of the row without an id, until a sweep
		t.Errorf("letters %v", s.letters)
	}
}

// A letter whose row is larger than a record may be is the same one after a restart, and is not written
// again. Of a row that no topic takes the letter has no more than what tells it from others.
func TestTheLetterOfALargeRowIsWrittenOnce(t *testing.T) {
	s := openShop(t, 0, nil)
	var letters []watermark.DeadLetter
	s.publishes = func(_ context.Context, tx watermark.Transaction) error {
		letters = append(letters, tx.DeadLetters...)
		return s.commit(tx)
	}
	bad, large := s.row(1, 0, 1), s.row(2, 0, 1)
	bad.bad, bad.padding, large.padding = true, 5000, 8<<20
	s.rows[1], s.rows[2] = bad, large
	for range 3 {
		s.takeOver()
		s.poll()
	}
	if len(letters) != 2 || len(letters[0].Row) != 5001 || len(letters[1].Row) > 100 {
		t.Fatalf("%d letters", len(letters))
	}
	large.padding++
	s.rows[2] = large
	if s.poll(); len(letters) != 3 {
		t.Errorf("%d letters after the row has changed", len(letters))
	}
}

// What a batch settles to make room in a full memory does not pass a row that has neither record nor letter.
func TestRoomIsNotMadeByPassingARowWithoutALetter(t *testing.T) {
	s := newShop(t, noon)
	s.config.Memory = memoryFor(3)
	for id := range int64(10) {
		s.rows[id] = s.row(id, time.Duration(id-20)*time.Minute, 1)
	}
	bad := s.rows[0]
	bad.bad = true
	s.rows[0] = bad
	s.takeOver()
	s.poller.state.deadLetters.most = 0
	_ = s.work() // holds: settled cannot move
	if s.mark.Settled > bad.updatedAt {
		t.Errorf("settled is %s, behind row 0 of %s", s.mark.Settled, bad.updatedAt)
	}
}

// Whoever reads dead letters must not learn who has the same address, but a letter is written anew when what
// it may show has changed.
func TestTheLetterOfARowThatIsTooLargeTellsNothingOfPersonalFields(t *testing.T) {
	for full, want := range map[bool][]bool{false: {false, true}, true: {true, true}} {
		set, err := schemas.Load("")
		if err != nil {
			t.Fatal(err)
		}
		set.Protect(schemas.Privacy{FullRejects: full})
		users := set.Get("users")
		d := newDeadLetters(&Settings{Resource: users}, nil)
		for i, change := range []string{"street_address", "country"} {
			var tx watermark.Transaction
			for _, text := range []string{"aaaa", "bbbb"} {
				row, reject := schemas.NewRowParser(users).Parse(fmt.Appendf(nil, `{"id":7,%q:%q,`+
					`"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:00Z"}`, change, text))
				if reject != nil {
					t.Fatal(reject.Err)
				}
				d.write(&tx, d.tooLarge(&row, 1000, 100))
			}
			if got := len(tx.DeadLetters) == 2; got != want[i] {
				t.Errorf("dead_letters.rows full %v: another %s gave %d letters", full, change, len(tx.DeadLetters))
			}
			d.known = map[string]uint64{}
		}
	}
}

// A value that is read as null loses nothing that the service knew, and the row is published. So it is
// counted each time, and said once.
func TestValuesThatAreReadAsNullAreCountedAndSaidOnce(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	s := newShop(t, noon)
	s.config.Log = zap.New(core)
	s.takeOver()
	for range 2 {
		batch := Batch{Nulls: map[string]int{"user_id": 3}}
		one := func(yield func(Batch, error) bool) { yield(batch, nil) }
		if err := s.poller.publish(one); err != nil {
			t.Fatal(err)
		}
	}
	if n := testutil.ToFloat64(s.poller.cfg.Metrics.ReadAsNull("user_id")); n != 6 {
		t.Errorf("counted %v values, expected 6", n)
	}
	if n := logged.FilterField(zap.String("field", "user_id")).Len(); n != 1 {
		t.Errorf("said %d times", n)
	}
}
