package postgres

import "time"

const (
	// chunkTime is how long a chunk's rows should take, of the 60 s that the service grants a statement.
	chunkTime = 3 * time.Second
	// chunkBytes is about how many bytes of encoded rows a chunk holds. The chunk before it may be waiting for
	// the poller, which publishes a third one. More gains nothing: it is one transaction of some ten thousand
	// rows. (Of 2M orders, 1.5 MiB peaked at 75 to 84 MiB, 1.25 MiB at 72 to 78, at the same rate.)
	chunkBytes = 1 << 20
	// sortedBytes is for a server that sorts the table for each chunk: fewer chunks are worth the memory.
	sortedBytes = 32 << 20
	// A server sorts if the first row takes sorting or longer, and sortingShare of the whole or more, chunk
	// after chunk. A server that is merely busy is late with the first row now and then.
	sorting      = 200 * time.Millisecond
	sortingShare = .5
	firstRows    = 10_000
	leastRows    = 100
	// forgive is after how many good chunks a size is tried again that the server cancelled.
	forgive = 64
)

// chunkSizer chooses how large the next chunk may be. It learns for as long as its Source lives.
type chunkSizer struct {
	rows, limit int // limit: the caller's
	ceiling     int // below the size that was last cancelled
	good        int // chunks since
	bytesPerRow int
	late        int // chunks in a row whose first row came late
}

func newChunkSizer(limit int) chunkSizer {
	return chunkSizer{rows: min(firstRows, limit), limit: limit, ceiling: limit}
}

func (s *chunkSizer) next() chunkSize {
	size := chunkSize{rows: min(s.rows, s.ceiling, s.limit), bytes: chunkBytes}
	if s.late > 1 {
		size.bytes = sortedBytes
	}
	if s.bytesPerRow > 0 {
		size.rows = min(size.rows, size.bytes/s.bytesPerRow)
	}
	size.rows = max(size.rows, min(leastRows, s.limit))
	return size
}

// learn takes the measure of a chunk that was read.
//
// Only the time after the first row counts. On a table without an index on updated_at the server scans and
// sorts everything before that row, whatever the LIMIT. If that time counted, chunks would get smaller, hence
// more of them, hence more scans, and smaller again.
func (s *chunkSizer) learn(c *chunk) {
	if c.n == 0 {
		return
	}
	s.bytesPerRow = max(1, c.bytes/c.n)
	if s.late++; c.first < sorting || float64(c.first) < sortingShare*float64(c.total) {
		s.late = 0
	}
	if s.good++; s.good >= forgive && s.ceiling < s.limit {
		s.ceiling, s.good = min(2*s.ceiling, s.limit), 0
	}
	if c.n < s.rows/2 {
		return // the end of the table says little
	}
	want := float64(c.n) * float64(chunkTime) / float64(max(c.total-c.first, time.Millisecond))
	s.rows = max(min(int(min(want, float64(4*c.n))), s.limit), c.n/4, leastRows)
}

// cancelled halves the size after the server cancelled n rows; false if nothing is left to halve.
func (s *chunkSizer) cancelled(n int) bool {
	if n <= leastRows {
		return false
	}
	s.ceiling, s.good = max(n/2, leastRows), 0
	s.rows = s.ceiling
	return true
}
