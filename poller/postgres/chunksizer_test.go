package postgres

import (
	"math"
	"testing"
	"time"
)

// read is what n rows of one transaction took.
func read(n, bytes int, first, total time.Duration) chunkCost {
	return chunkCost{rows: n, bytes: bytes, first: first, total: total}
}

func TestAChunkSizeFollowsTheTimeOfItsRowsAndNotThatOfTheScanBeforeThem(t *testing.T) {
	s := newChunkSizer(100_000)
	for range 20 { // no index: a whole scan before the first row
		n := s.next().rows
		s.learn(read(n, 100*n, 40*time.Second, 40*time.Second+time.Duration(n)*time.Microsecond))
	}
	if s.next().rows != 100_000 {
		t.Errorf("a table without an index is read %d rows at a time", s.next().rows)
	}
	s.cancelled(s.next().rows)
	if got := s.next().rows; got != 50_000 {
		t.Errorf("after a timeout the next chunk is of %d rows, expected half", got)
	}
	for range 20 {
		n := s.next().rows
		s.learn(read(n, 100*n, 0, time.Duration(n)*time.Millisecond))
	}
	if got := s.next().rows; got < 1500 || got > 6000 {
		t.Errorf("rows of a millisecond are read %d at a time, expected about 3 s of them", got)
	}
	s.learn(read(s.next().rows, s.next().rows<<20, 0, time.Millisecond))
	if got := s.next().rows; got != 1 {
		t.Errorf("rows of a MiB are read %d at a time", got)
	}
	s.widths(1000, 70_000)
	for s.cancelled(s.next().rows) {
	}
	if got := s.next().rows; got != leastRows {
		t.Errorf("the smallest chunk is of %d rows", got)
	}
}

// Large chunks cost memory. They are for a server that sorts the whole table for each chunk.
func TestOnlyAServerThatSortsForEachChunkGetsLargeOnes(t *testing.T) {
	const rows, width = 20_000, 70
	s := newChunkSizer(math.MaxInt)
	const second = time.Second
	for _, chunk := range []struct {
		name         string
		first, total time.Duration
		large        bool
	}{
		{"an index", second / 500, second / 30, false},
		{"a server that is busy once", second * 9 / 10, second, false},
		{"an index again", second / 500, second / 30, false},
		{"a server that is slow with all rows", second * 3 / 10, second, false},
		{"the same", second * 3 / 10, second, false},
		{"a sort", 2 * second, second * 21 / 10, false},
		{"the second sort", 2 * second, second * 21 / 10, true},
		{"a third, of a large chunk", 2 * second, second * 35 / 10, true},
		{"an index since", second / 500, second * 6 / 10, false},
	} {
		s.learn(read(rows, rows*width, chunk.first, chunk.total))
		s.rows = math.MaxInt // as time alone would have it
		if got := s.next().rows * width; got > chunkBytes != chunk.large || got > sortedBytes {
			t.Errorf("after %s: a chunk of %d bytes, expected a large one: %v", chunk.name, got, chunk.large)
		}
	}
}
