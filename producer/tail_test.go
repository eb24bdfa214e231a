package producer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/producer"
)

func TestTailGivesWhatWasCommittedThenWhatComes(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	tx := next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped"))
	tx.Deletes = []int64{2}
	s.commit(session, tx)

	var got []string
	for r, err := range producer.Tail(s.ctx(), c, s.orders(), -1, true) {
		if err != nil {
			t.Fatal(err)
		}
		line := "gone"
		if r.Err != nil {
			line = r.Err.Error()
		} else if !r.Tombstone {
			line = string(r.Value.AppendJSON(nil, true))
		}
		if got = append(got, line); len(got) == 2 {
			break
		}
	}
	slices.Sort(got)
	if len(got) != 2 || got[0] != "gone" && got[1] != "gone" ||
		!strings.Contains(strings.Join(got, ""), `"status":"Shipped"`) {
		t.Errorf("tail gave %q", got)
	}

	following := make(chan error, 1)
	go func() { following <- s.tailTo(c, 3) }()
	s.commit(session, next(session, s.order(3, "2026-11-20T10:00:00Z", "Shipped")))
	if err := <-following; err != nil {
		t.Errorf("following ended with %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range producer.Tail(ctx, c, s.orders(), 0, true) {
		if err == nil {
			t.Error("tail outlived its context")
		}
	}
}

// A registry that is down, or is asked twice a second, would end it.
func TestTailAsksTheRegistryOnceForASchema(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	var got []int64
	for r, err := range producer.Tail(s.ctx(), c, s.orders(), -1, true) {
		if err = errors.Join(err, r.Err); err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		if got = append(got, r.ID); len(got) == 2 {
			break
		}
		if err := s.registry.Stop(); err != nil {
			t.Fatal(err)
		}
		s.commit(session, next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	}
	if !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("tail gave %v", got)
	}
}

// tailTo follows orders from the beginning to the row id.
func (s *stage) tailTo(c *producer.Cluster, id int64) error {
	for r, err := range producer.Tail(s.ctx(), c, s.orders(), -1, true) {
		if err != nil || r.ID == id {
			return err
		}
	}
	return errors.New("tail has ended")
}

// Every row has a transaction of its own, so half of the offsets are markers: the last records lie further
// back than as many offsets.
func TestTailGivesTheLastRecordsOfAllPartitionsByTheirTimesAndEnds(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	for id := range int64(40) {
		s.commit(session, next(session, s.order(id, fmt.Sprintf("2026-11-20T09:%02d:00Z", id), "Shipped")))
	}
	// Apache Kafka acknowledges a commit before it has written the markers that let readers see it.
	if err := s.tailTo(c, 39); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ last, first, records int }{{5, 35, 5}, {1, 39, 1}, {100, 0, 40}} {
		var ids []int64
		for r, err := range producer.Tail(s.ctx(), c, s.orders(), test.last, false) {
			if err = errors.Join(err, r.Err); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		if len(ids) != test.records || ids[0] != int64(test.first) || !slices.IsSorted(ids) {
			t.Errorf("the last %d of 40: %v", test.last, ids)
		}
	}
}

// A row that comes back with the updated_at that it had is older than its tombstone, and lies behind it.
func TestTailGivesARowThatComesBackAfterItsTombstone(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	deletion := next(session)
	deletion.Deletes = []int64{1}
	s.commit(session, deletion)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.commit(session, next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	if err := s.tailTo(c, 2); err != nil {
		t.Fatal(err)
	}
	var got []bool
	for r, err := range producer.Tail(s.ctx(), c, s.orders(), 3, false) {
		if err = errors.Join(err, r.Err); err != nil {
			t.Fatal(err)
		}
		if r.ID == 1 {
			got = append(got, r.Tombstone)
		}
	}
	if !slices.Equal(got, []bool{true, false}) {
		t.Errorf("deletions among the last records of row 1: %v, expected the deletion first", got)
	}
}

func TestReadWatermarksGivesTheNewestOfEachResource(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	for _, name := range []string{"orders", "users"} {
		session, err := producer.Take(s.ctx(), c, s.set.Get(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		for range 3 {
			tx := next(session)
			tx.Watermark.Rows++
			s.commit(session, tx)
		}
	}
	for {
		marks, _, err := producer.ReadWatermarks(s.ctx(), c)
		if err != nil || len(marks) > 2 {
			t.Fatalf("watermarks %+v, %v", marks, err)
		}
		if len(marks) == 2 && marks["orders"].Rows == 3 && marks["users"].Rows == 3 {
			return // a real broker shows a commit a moment after it has answered it
		}
	}
}
