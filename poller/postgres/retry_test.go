package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rotation"
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
