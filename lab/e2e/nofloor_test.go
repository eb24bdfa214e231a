package e2e

import (
	"context"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Where the rows' transactions tell nothing, each poll reads the overlap again, and dedup alone sees to it
// that each version is published once: also beside a forgotten transaction, and by a successor.
func TestWithoutAFloorEachVersionIsPublishedOnce(t *testing.T) {
	for name, ddl := range map[string]string{
		"a view": "ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT * FROM base; " +
			"GRANT SELECT ON orders TO " + storefake.ReaderRole,
		"a grant on columns": "REVOKE SELECT ON orders FROM " + storefake.ReaderRole + "; GRANT SELECT (id, " +
			"user_id, status, total_amount, created_at, updated_at) ON orders TO " + storefake.ReaderRole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			furtherScenario(t)
			const orders = 2000
			s := start(t, setup{yaml: quick, fake: storefake.Config{Seed: 61,
				Size: storefake.Size{Users: 100, Orders: orders, Products: 50}}})
			if err := s.fake.Exec(context.Background(), ddl); err != nil {
				t.Fatal(err)
			}
			p := s.spawn("run")
			p.isReady()
			s.each(nil, 1, orders)
			before, forgotten := lastOffsets(s.topic(storefake.Orders)), s.forgets()
			changed := s.updateAll()
			p.publishes(orders+changed/2, orders+changed+1)
			p.kill()
			s.spawn("run").isReady()
			if err := forgotten.Commit(context.Background()); err != nil {
				t.Fatal(err)
			}
			s.quiet()
			s.each(before, 1, changed)
		})
	}
}
