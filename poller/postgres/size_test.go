package postgres

import (
	"math"
	"testing"
	"time"
)

// Larger chunks where the server sorts the whole table for each of them (K21), and nowhere else: they cost memory.
func TestOnlyAServerThatSortsForEachChunkGetsLargeOnes(t *testing.T) {
	const rows, width = 20_000, 70
	s := newSizer(math.MaxInt)
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
		s.took(rows, rows*width, chunk.first, chunk.total)
		s.rows = math.MaxInt // as time alone would have it
		if got := s.next() * width; got > chunkBytes != chunk.large || got > sortedBytes {
			t.Errorf("after %s: a chunk of %d bytes, expected a large one: %v", chunk.name, got, chunk.large)
		}
	}
}
