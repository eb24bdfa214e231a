package postgres

import "time"

const (
	// chunkBytes is the size of a chunk in bytes of encoded rows. A chunk may exceed it by half and one row. The
	// chunk before it may be waiting for the poller, which publishes a third one. A larger chunk gains nothing:
	// it is one transaction of some ten thousand rows. (Of 2M orders, 1.5 MiB peaked at 75 to 84 MiB, 1.25 MiB
	// at 72 to 78, at the same rate.)
	chunkBytes = 1 << 20
	// mostBytes limits what one transaction reads: see chunkSizer.learn.
	mostBytes = 32 << 20
	// firstWidth is the number of bytes that a row is expected to have before one was read.
	firstWidth = 100
	leastRows  = 100
	// forgive is the number of good transactions after which a size that the server cancelled is tried again.
	forgive = 64
)

// The bounds of chunkSizer.scan.
const (
	firstScan = 1 << 20
	leastScan = 1 << 10
	mostScan  = 1 << 26
)

// chunkSizer chooses how much the next transaction may read. It learns for as long as its Source lives.
type chunkSizer struct {
	most  int // the caller's limit of rows
	limit int // the limit of rows that the server has not cancelled
	good  int // transactions since the server cancelled one
	width int // bytes of a row of the last chunk
	bytes int // of one transaction
	// scan is the number of rows that a transaction with a filter may look at. Zero means any number, until the
	// server cancels one.
	scan int
	far  bool // the last transaction had a filter
}

func newChunkSizer(most int) chunkSizer {
	return chunkSizer{most: most, limit: most, width: firstWidth, bytes: chunkBytes}
}

// rows returns the limit of rows for the next transaction.
func (s *chunkSizer) rows() int { return max(min(s.limit, s.bytes/s.width), 1) }

// met learns how wide rows are.
func (s *chunkSizer) met(c *chunk) {
	if n := c.count(); n > 0 {
		s.width = max(c.bytes/n, 1)
	}
}

// learn learns from a transaction whose rows were all read: the time until its first row, and the whole time.
// reached is set if it had as many rows as it might.
//
// Without an index on updated_at, the server scans and sorts the whole table before the first row, whatever
// the LIMIT. So if the first row takes half of the time or more, the next transaction reads twice as much.
func (s *chunkSizer) learn(reached bool, first, total time.Duration) {
	switch {
	case s.far: // it waits for rows that pass the filter
		if s.scan > 0 && s.scan < mostScan {
			s.scan *= 2
		}
	case reached && first >= total/2:
		s.bytes = min(2*s.bytes, mostBytes)
	default:
		s.bytes = chunkBytes
	}
	if s.good++; s.good >= forgive && s.limit < s.most {
		s.limit, s.good = min(2*s.limit, s.most), 0
	}
}

// cancelled halves what the next transaction reads, because the server cancelled the last one, which might
// have had so many rows. It returns false if nothing is left to halve. The present limit decides nothing: if
// the last transaction has shown that rows are wide, the next one reads few of them already.
//
// The fewer rows pass a filter, the further a statement looks for them: too far, if an old transaction ends
// after millions of changes. A smaller LIMIT is no help then. So a transaction with a filter ends at the
// place that lies scan rows on.
func (s *chunkSizer) cancelled(rows int) bool {
	switch {
	case s.far && s.scan == 0:
		s.scan = firstScan
	case s.far && s.scan == leastScan:
		return false
	case s.far:
		s.scan = max(s.scan/2, leastScan)
	case rows <= leastRows:
		return false
	default:
		s.limit, s.good = max(rows/2, leastRows), 0
	}
	return true
}
