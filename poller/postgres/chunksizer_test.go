package postgres

import (
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

func chunkOf(rows, width int) *chunk {
	return &chunk{rows: make([]schemas.Record, rows), bytes: rows * width}
}

func TestACancelledSizeIsHalvedAndTriedAgainLater(t *testing.T) {
	s := newChunkSizer(100_000)
	s.met(chunkOf(1000, 10))
	if got := s.rows(); got != 100_000 {
		t.Errorf("narrow rows are read %d at a time", got)
	}
	s.cancelled(s.rows())
	if got := s.rows(); got != 50_000 {
		t.Errorf("after a timeout %d rows are read, expected half", got)
	}
	for range forgive {
		s.learn(true, 0, time.Second)
	}
	if got := s.rows(); got != 100_000 {
		t.Errorf("long after a timeout %d rows are read at a time", got)
	}
	for s.cancelled(s.rows()) {
	}
	if got := s.rows(); got != leastRows {
		t.Errorf("at least %d rows are read at a time", got)
	}
	s.met(chunkOf(1, 1<<20))
	if got := s.rows(); got != 1 {
		t.Errorf("rows of a MiB are read %d at a time", got)
	}
}

// Without an index the server sorts the whole table for each statement, whatever its size.
func TestAServerThatSortsForEachTransactionIsAskedForMore(t *testing.T) {
	const second = time.Second
	s := newChunkSizer(1 << 30)
	s.met(chunkOf(20_000, 70))
	read := func() int { return s.rows() * 70 }
	for range 10 {
		s.learn(true, 2*second, second*21/10)
	}
	if got := read(); got > mostBytes || got < mostBytes-70 {
		t.Errorf("a server that sorts is asked for %d bytes", got)
	}
	s.learn(true, second/500, second/30)
	if got := read(); got > chunkBytes {
		t.Errorf("a server with an index is asked for %d bytes", got)
	}
}
