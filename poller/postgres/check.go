package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/storestream/storestream/schemas"
)

// Check tries what reading r needs, once and without retries, and says in one line what it found. Errors are those of Source.Read.
func (db *DB) Check(ctx context.Context, r *schemas.Resource) (string, error) {
	t, err := db.look(ctx, r)
	if err != nil {
		return "", db.explain(r.Table, err)
	}
	c, err := db.snapshot(ctx, catalogueDeadline, nil, nil)
	if err != nil {
		return "", db.explain(r.Table, err)
	}
	kind := "primary"
	if c.standby {
		kind = "standby"
	}
	found := fmt.Sprintf("role %s reads %s at %s (a %s)", db.user, t.name, db.where, kind)
	if len(t.missing) > 0 {
		found += "; without a column, so null: " + strings.Join(t.missing, ", ")
	}
	if !c.known {
		found += "; it has replayed no transaction since it started, so nothing can settle"
	}
	return found, nil
}
