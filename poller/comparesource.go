package poller

import (
	"context"
	"errors"
	"iter"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/schemas"
)

// CompareSource returns the function by which a comparison reads s. known has the From, Identity and Fields
// of its requests, and the Everywhere of its lookups. clock is the wall clock. read is called with the number
// of rows of each batch.
func CompareSource(s Source, known Request, clock func() schemas.Instant,
	read func(rows int)) reconcile.SourceReader {
	return func(ctx context.Context, rows []Suspect) iter.Seq2[reconcile.Answer, error] {
		r := known
		r.Kind, r.Started = Full, clock()
		if rows != nil {
			r.Kind, r.Suspects = Lookup, rows
		}
		return func(yield func(reconcile.Answer, error) bool) {
			complete := false
			for b, err := range s.Read(ctx, r) {
				if err != nil {
					yield(reconcile.Answer{}, err)
					return
				}
				read(len(b.Rows) + len(b.Rejects))
				complete = complete || b.Done != nil && (r.Kind == Lookup || b.Done.Complete)
				a := reconcile.Answer{Rows: b.Rows, Rejects: b.Rejects, Empty: b.Done != nil && b.Done.Empty}
				if !yield(a, nil) {
					return
				}
			}
			if !complete {
				yield(reconcile.Answer{},
					errors.New("a defect in storestream: the source ended without saying that it read everything"))
			}
		}
	}
}

// CreatedAtIn returns a function that reads created_at in a value of r, as a source encodes it; MinInstant
// if there is none. The function is for one goroutine at a time.
func CreatedAtIn(r *schemas.Resource) func(value []byte) schemas.Instant {
	values, err := schemas.NewValueReader(r, "")
	return func(value []byte) schemas.Instant {
		if err == nil { // always: today's schema reads today's values
			if v, err := values.Read(value); err == nil {
				return v.CreatedAt
			}
		}
		return schemas.MinInstant
	}
}
