package storefake

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// filled is a store of synthetic rows in memory.
func filled(t *testing.T, c Config) *Fake {
	t.Helper()
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var few = Config{Seed: 1, Size: Size{Users: 20, Orders: 50, Products: 10}}

// until waits for another goroutine to get there.
func until(t *testing.T, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !there(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it did not get there within 10 s")
		}
	}
}

func TestABulkStatementWaitsForTheRowsOthersHoldAndKeepsThemOut(t *testing.T) {
	s, ctx := filled(t, few), t.Context()
	tx := s.Begin()
	if err := tx.Update(ctx, Orders, 5, func(r Row) { r["user_id"] = int64(7) }); err != nil {
		t.Fatal(err)
	}
	stamped := make(chan time.Time, 1)
	go func() {
		at, n, err := s.BulkUpdate(ctx, Orders, 1, 10)
		if n != 10 || err != nil {
			t.Errorf("bulk: %d rows, %v", n, err)
		}
		stamped <- at
	}()
	until(t, func() bool { return s.locks.taken(rowKey{Orders, 6}) })
	other, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := s.Touch(other, Orders, 6); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a row of the range was free: %v", err)
	}
	if err := s.Touch(ctx, Orders, 11); err != nil {
		t.Errorf("a row outside of the range: %v", err)
	}
	// the bulk statement waits for this transaction, not the other way round
	if err := tx.Update(ctx, Orders, 6, func(Row) {}); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	at := <-stamped
	if row, _ := s.Row(Orders, 5); row["user_id"] != int64(7) || !row.Time("updated_at").Equal(at) {
		t.Errorf("order 5 is %v, expected the transaction's user and the bulk statement's instant %v", row, at)
	}
}

func TestTheSecondTransactionOnARowWaitsForTheFirst(t *testing.T) {
	s, ctx := filled(t, few), t.Context()
	first := s.Begin()
	if err := first.Update(ctx, Users, 1, func(r Row) { r["age"] = int64(30) }); err != nil {
		t.Fatal(err)
	}
	started, done := make(chan bool), make(chan error)
	go func() {
		close(started)
		done <- s.Update(ctx, Users, 1, func(r Row) { r["age"] = r["age"].(int64) + 1 })
	}()
	<-started
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if row, _ := s.Row(Users, 1); row["age"] != int64(31) {
		t.Errorf("age %v, expected 31: the second saw what the first had not committed, or missed it", row["age"])
	}
}

func TestWhatIsTakenBackIsNotSeen(t *testing.T) {
	s, ctx := filled(t, few), t.Context()
	failed := errors.New("changed its mind")
	err := s.Do(ctx, func(tx *Tx) error {
		if err := tx.Delete(ctx, Users, 1); err != nil {
			return err
		}
		return failed
	})
	if _, ok := s.Row(Users, 1); !ok || !errors.Is(err, failed) {
		t.Errorf("the row is there: %v, error %v", ok, err)
	}
	if err := s.Touch(ctx, Users, 1); err != nil {
		t.Errorf("the row is still locked: %v", err)
	}
	for what, err := range map[string]error{
		"an update of no row": s.Touch(ctx, Users, 999),
		"a delete of no row":  s.Delete(ctx, Users, 999),
		"a field too many":    s.Update(ctx, Users, 1, func(r Row) { r["shoe_size"] = int64(43) }),
		"a wrong type":        s.Update(ctx, Users, 1, func(r Row) { r["age"] = "old" }),
		"another id":          s.Update(ctx, Users, 1, func(r Row) { r["id"] = int64(2) }),
		"no such resource":    s.Touch(ctx, "baskets", 1),
	} {
		if err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	if _, err := s.Insert(ctx, Users, Row{"id": int64(2)}); err == nil {
		t.Error("an id was given twice")
	}
}

func TestTheClockRunsAtItsOwnPace(t *testing.T) {
	at := time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)
	c := newClock(at, 0, 1e6, true)
	until(t, func() bool { return c.Now().After(at.Add(time.Hour)) }) // within milliseconds
	if c.Now().Nanosecond() != 0 {
		t.Error("a clock of whole seconds shows a fraction")
	}
	c = newClock(at, 0, 1e-9, true)
	c.Advance(-time.Minute)
	if got := c.Now(); !got.Equal(at.Add(-time.Minute)) {
		t.Errorf("%v, expected a minute before %v", got, at)
	}
}
