package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// A transaction stays open while its chunks are published. If Kafka is slow, that may take longer than a
// transaction may last.
func TestATransactionThatItsConsumerHeldForTooLongIsFollowedByAnother(t *testing.T) {
	db, err := Open(rotation.Literal("postgres://student_ro@127.0.0.1/store?sslmode=disable"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := newChunkReader(db, SourceConfig{Resource: &schemas.Resource{Table: "orders"}})
	for rows, fails := range map[int]bool{0: true, 23_000: false} {
		failures := 0
		tx := &transaction{begun: time.Now(), limit: 93_000, count: rows}
		err := r.retry(t.Context(), &failures, tx, context.DeadlineExceeded)
		if (err != nil) != fails {
			t.Errorf("after %d rows: %v", rows, err)
		}
	}
}

// Ranges of blocks whose versions are dead give no rows, so their rows do not limit the next range.
func TestBlocksDoubleUntilNearTheSizeThatWasCut(t *testing.T) {
	p := &pass{load: &watermark.Load{Blocks: 1 << 40}, blocks: 1024, cut: 4096}
	sizes := map[int]bool{}
	for range 200 {
		if p.moveBehind(&chunk{last: true}); p.blocks < 4096 {
			sizes[p.blocks] = true
		}
	}
	if !sizes[2048] || len(sizes) < 40 || p.blocks != mostBlocks {
		t.Errorf("%d sizes below the one that was cut, now %d", len(sizes), p.blocks)
	}
}

// The database's clock is ahead of ours. A record of the load that lay in the future would keep the records
// of all the load for a takeover.
func TestALoadHasNoRowOfTheFuture(t *testing.T) {
	ours := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	at := schemas.InstantOf(ours)
	hs := horizons{overlap: time.Minute, recorded: []horizon{{time: at.Add(time.Hour), next: 5}}}
	p := &pass{horizons: &hs, clock: &clock{snapshot: snapshot{xmin: 5}, asked: ours}}
	if p.beginLoad(1000); p.load.Before != at {
		t.Errorf("the load has rows before %s, at %s", p.load.Before, at)
	}
}
