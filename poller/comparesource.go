package poller

import (
	"context"
	"errors"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/schemas"
)

// CompareSource returns the function by which a comparison reads s: in full, or the suspects once more. known
// has the From, Identity and Fields of its requests. clock is the wall clock.
func CompareSource(s Source, known Request, clock func() schemas.Instant) compare.SourceReader {
	return func(ctx context.Context, ids compare.Range, suspects []Suspect, take compare.Take) error {
		r := known
		r.Kind, r.IDs, r.Started = Full, &ids, clock()
		if suspects != nil {
			r.Kind, r.Suspects, r.Everywhere = Lookup, suspects, true
		}
		done := false
		err := Safely("reading", func() error {
			for b, err := range s.Read(ctx, r) {
				if err != nil {
					return err
				}
				done = done || b.Done != nil && (r.Kind == Lookup || b.Done.Complete)
				if err := take(b.Rows, b.Rejects); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil && !done {
			err = errors.New("a defect in storestream: the source ended without saying that it read everything")
		}
		return err
	}
}

// CreatedAtIn returns a function that reads created_at in a value of r, as a source encodes it; MinInstant
// where there is none. The function is for one goroutine at a time.
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
