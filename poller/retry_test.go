package poller

import (
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
)

// Rows that no poll reads again, because their updated_at is old, are looked up on request. What can be
// published by now is published. Nothing is deleted, and the other rows are not read into the topic again.
func TestARetryPublishesRowsWithDeadLettersThatCanBeByNow(t *testing.T) {
	for name, ids := range map[string][]int64{"all": nil, "named": {4, 5, 6, 30, 31, 32}} {
		s := hourly(t, func(c *Config) { c.Sweep.Tombstone = true })
		for _, id := range []int64{5, 6, 30, 31, 32} {
			s.rows[id] = row{id: id, updatedAt: s.clock(), content: 2, bad: true}
		}
		s.pollFor(10 * shopOverlap)
		before := len(s.topic)
		for _, id := range []int64{5, 30} {
			s.rows[id] = row{id: id, updatedAt: s.rows[id].updatedAt, content: 2}
		}
		delete(s.rows, 6)
		delete(s.rows, 32)
		if s.pollFor(10 * shopOverlap); len(s.letters) != 5 || len(s.topic) != before {
			t.Fatalf("%s: polls have found it: %d letters, %d records", name, len(s.letters), len(s.topic)-before)
		}
		s.ask(watermark.Request{Kind: watermark.Retries, Rows: ids})
		s.awaitReplay()
		s.wants(s.rows[5])
		s.wants(s.rows[30])
		if newest, there := s.newest(6); !there || newest.Tombstone || len(s.topic) != before+2 {
			t.Errorf("%s: %d records, row 6: %+v", name, len(s.topic)-before, newest)
		}
		if _, there := s.letters["orders/31"]; !there || len(s.letters) != 1 {
			t.Errorf("%s: the letters are %v", name, s.letters)
		}
		got := s.mark.Replayed
		if got.Rows != 2 || !strings.HasPrefix(got.Left, "1 row still cannot be published") ||
			!strings.Contains(got.Left, "does not have 1 row of the topic") || s.mark.LastSweep > 0 && s.full > 0 {
			t.Errorf("%s: %+v, %d full readings", name, got, s.full)
		}
	}
}

// A retry without anything to look up ends, and is no sweep.
func TestARetryWithoutDeadLettersEndsAtOnce(t *testing.T) {
	s := hourly(t, nil)
	s.rows[50] = s.row(50, -30*time.Hour, 1) // a sweep would find it
	before := len(s.topic)
	s.ask(watermark.Request{Kind: watermark.Retries})
	s.awaitReplay()
	if got := s.mark.Replayed; got.Rows != 0 || got.Left != "" || len(s.topic) != before || s.full != 0 {
		t.Errorf("%+v, %d records, %d full readings", got, len(s.topic)-before, s.full)
	}
}
