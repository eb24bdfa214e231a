package postgres

import "time"

const (
	// chunkTime is what a chunk's rows are to take, of the 60 s that the service grants a statement.
	chunkTime = 3 * time.Second
	// A chunk holds about this many bytes of encoded rows; the one before it may be waiting for the poller, which publishes a third. More gains
	// nothing: it is one transaction of some ten thousand rows. (Of 2M orders, 1.5 MiB peaked at 75 to 84 MiB, 1.25 MiB at 72 to 78, at the same rate.)
	chunkBytes = 1 << 20
	// Where the server scans and sorts the table for each chunk, every chunk fewer counts for more than memory does.
	sortedBytes = 32 << 20
	// sorting is how long the first row takes at least where the server sorts, and sortingShare of the whole; chunk after chunk. A server that is merely
	// busy is late with the first row now and then.
	sorting      = 200 * time.Millisecond
	sortingShare = .5
	firstRows    = 10_000
	leastRows    = 100
	// forgive is after how many good chunks a size is tried again that the server cancelled.
	forgive = 64
)

// sizer chooses how many rows the next chunk asks for.
type sizer struct {
	rows, limit int // limit: the caller's
	ceiling     int // below the size that was last cancelled
	good        int // chunks since
	bytesPerRow int
	late        int // chunks in a row whose first row came late
}

func newSizer(limit int) sizer {
	return sizer{rows: min(firstRows, limit), limit: limit, ceiling: limit}
}

func (s *sizer) next() int {
	n := min(s.rows, s.ceiling, s.limit)
	if s.bytesPerRow > 0 {
		n = min(n, s.bytes()/s.bytesPerRow)
	}
	return max(n, min(leastRows, s.limit))
}

// bytes is how much the next chunk may hold.
func (s *sizer) bytes() int {
	if s.late > 1 {
		return sortedBytes
	}
	return chunkBytes
}

// took learns from a chunk of n rows: first is how long the first row took to come, total how long all took.
//
// Only the time after the first row counts. On a table without an index on updated_at the server scans and sorts everything before that row,
// whatever the LIMIT: counting it would make chunks smaller, hence more of them, hence more scans, and smaller again (K21).
func (s *sizer) took(n, bytes int, first, total time.Duration) {
	if n == 0 {
		return
	}
	s.bytesPerRow = max(1, bytes/n)
	if s.late++; first < sorting || float64(first) < sortingShare*float64(total) {
		s.late = 0
	}
	if s.good++; s.good >= forgive && s.ceiling < s.limit {
		s.ceiling, s.good = min(2*s.ceiling, s.limit), 0
	}
	if n < s.rows/2 {
		return // the end of the table says little
	}
	want := float64(n) * float64(chunkTime) / float64(max(total-first, time.Millisecond))
	s.rows = max(min(int(min(want, float64(4*n))), s.limit), n/4, leastRows)
}

// cancelled halves after the server cancelled a chunk of n rows; false when there is nothing left to halve.
func (s *sizer) cancelled(n int) bool {
	if n <= leastRows {
		return false
	}
	s.ceiling, s.good = max(n/2, leastRows), 0
	s.rows = s.ceiling
	return true
}
