package postgres

import (
	"testing"
	"time"
)

// Without an index the server sorts the whole table for each statement, whatever its size.
func TestAServerThatSortsForEachTransactionIsAskedForMore(t *testing.T) {
	r := newChunkReader(nil, SourceConfig{MaxRows: 1 << 30})
	r.learn(2 * time.Second)
	if got := r.rows() * r.width; got > mostBytes || got < mostBytes-r.width {
		t.Errorf("a server that sorts is asked for %d bytes", got)
	}
	r.learn(2 * time.Millisecond)
	if got := r.rows() * r.width; got > chunkBytes {
		t.Errorf("a server with an index is asked for %d bytes", got)
	}
}
