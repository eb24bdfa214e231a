package poller

import (
	"context"
	"errors"
	"time"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/schemas"
)

// CompareSource is how a comparison reads s: in full from `from` on, or the suspects once more. It is an error if s ends without saying that it has met
// all there is.
func CompareSource(s Source, from schemas.Instant, now func() time.Time) func(context.Context, []compare.Suspect, func([]schemas.Record, []schemas.Reject)) error {
	return func(ctx context.Context, suspects []compare.Suspect, take func([]schemas.Record, []schemas.Reject)) error {
		r := Request{Kind: Full, From: from, Started: schemas.InstantOf(now())}
		if suspects != nil {
			r.Kind, r.Suspects = Lookup, suspectsOf(suspects)
		}
		done := false
		err := readSafely(ctx, s, r, func(b Batch) error {
			take(b.Rows, b.Rejects)
			done = done || b.Done != nil && (r.Kind == Lookup || b.Done.Complete)
			return nil
		})
		if err == nil && !done {
			err = errors.New("a defect in storestream: the source ended without saying that it read everything")
		}
		return err
	}
}

func suspectsOf(list []compare.Suspect) []Suspect {
	all := make([]Suspect, len(list))
	for i, s := range list {
		all[i] = Suspect(s)
	}
	return all
}

// CreatedAtIn returns what reads created_at in a value of r, as a source encodes it; MinInstant where there is none. It is for one goroutine at a time.
func CreatedAtIn(r *schemas.Resource) func(value []byte) schemas.Instant {
	values, err := schemas.NewValueReader(r, "")
	return func(value []byte) schemas.Instant {
		if err != nil { // today's schema reads today's values
			return schemas.MinInstant
		}
		v, err := values.Read(value)
		if err != nil {
			return schemas.MinInstant
		}
		return v.CreatedAt
	}
}
