package producer

import (
	"sync/atomic"
	"time"
)

const (
	mostRows   = 100_000 // beyond it a transaction gains nothing: measured, 10k and more cost the same a row
	fewestRows = 500
)

// batchSizer says how many rows a transaction of one resource should hold.
type batchSizer struct {
	max atomic.Int64
}

func newBatchSizer() *batchSizer {
	s := &batchSizer{}
	s.max.Store(mostRows)
	return s
}

func (s *batchSizer) rows() int { return int(s.max.Load()) }

// adapt takes in how long a transaction of rows took. One that took a third of the timeout halves the next:
// the broker's clock and ours differ, and a transaction that times out was for nothing. With each that had
// time to spare the next grows by a sixteenth.
func (s *batchSizer) adapt(rows int, took, timeout time.Duration, failed bool) {
	now := s.rows()
	switch {
	case took > timeout/3:
		s.max.Store(int64(max(min(now, max(rows, 1))/2, fewestRows)))
	case !failed && took < timeout/12 && rows >= now/2:
		s.max.Store(int64(min(now+now/16, mostRows)))
	}
}
