package postgres

import "time"

const (
	// chunkTime is how long a chunk's rows should take, of the 60 s that the service grants a statement.
	chunkTime = 3 * time.Second
	// chunkBytes is about how many bytes of encoded rows a chunk holds, and at most half as many again and a
	// row. The chunk before it may be waiting for the poller, which publishes a third one. More gains nothing:
	// it is one transaction of some ten thousand rows. (Of 2M orders, 1.5 MiB peaked at 75 to 84 MiB, 1.25 MiB
	// at 72 to 78, at the same rate.)
	chunkBytes = 1 << 20
	// sortedBytes is how much one transaction reads of a server that sorts the table for each: as chunks of
	// chunkBytes, while the server waits with the rest.
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
	rows, bytes := min(max(s.rows, leastRows), s.ceiling, s.limit), chunkBytes
	if s.late > 1 {
		bytes = sortedBytes
	}
	if s.bytesPerRow > 0 {
		rows = min(rows, max(bytes/s.bytesPerRow, 1))
	}
	return chunkSize{rows: rows, bytes: chunkBytes}
}

// widths takes the measure of rows at once, also of those whose transaction fails later.
func (s *chunkSizer) widths(rows, bytes int) {
	if rows > 0 {
		s.bytesPerRow = max(1, bytes/rows)
	}
}

// learn takes the measure of a transaction whose rows were all read.
//
// Only the time after the first row counts. On a table without an index on updated_at the server scans and
// sorts everything before that row, whatever the LIMIT. If that time counted, chunks would get smaller, hence
// more of them, hence more scans, and smaller again.
func (s *chunkSizer) learn(c chunkCost) {
	if c.rows == 0 {
		return
	}
	s.widths(c.rows, c.bytes)
	if s.late++; c.first < sorting || float64(c.first) < sortingShare*float64(c.total) {
		s.late = 0
	}
	if s.good++; s.good >= forgive && s.ceiling < s.limit {
		s.ceiling, s.good = min(2*s.ceiling, s.limit), 0
	}
	if c.rows < s.rows/2 {
		return // the end of the table says little
	}
	want := float64(c.rows) * float64(chunkTime) / float64(max(c.total-c.first, time.Millisecond))
	s.rows = max(min(int(min(want, float64(4*c.rows))), s.limit), c.rows/4)
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
