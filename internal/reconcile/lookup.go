package reconcile

import (
	"iter"
	"slices"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// lookup collects the versions of the suspects that the source shows in one look.
type lookup struct {
	wanted   map[int64]*suspect
	versions map[int64][]schemas.Record
	rejects  map[int64]schemas.Reject // the newest version that cannot be published
	nameless map[uint64]bool          // rows without a usable id, by their hash
	empty    bool
}

// read takes what the source shows, and ignores other rows.
func (l *lookup) read(answers iter.Seq2[Answer, error]) error {
	for a, err := range answers {
		if err != nil {
			return err
		}
		l.empty = l.empty || a.Empty
		for _, row := range a.Rows {
			if l.wanted[row.ID] != nil {
				row.Value = slices.Clone(row.Value)
				l.versions[row.ID] = append(l.versions[row.ID], row)
			}
		}
		for _, r := range a.Rejects {
			before, there := l.rejects[r.ID]
			switch {
			case !r.HasID:
				l.nameless[watermark.DeadLetterHash(r.Row)] = true
			case l.wanted[r.ID] != nil && (!there || r.UpdatedAt >= before.UpdatedAt):
				l.rejects[r.ID] = r
			}
		}
	}
	return nil
}

// reject returns the row if it cannot be published, or nil. A good version at least as new as the bad one
// means that it can: the source showed an older version beside the row.
func (l *lookup) reject(id int64) *schemas.Reject {
	r, bad := l.rejects[id]
	asNew := func(row schemas.Record) bool { return row.UpdatedAt >= r.UpdatedAt }
	if !bad || slices.ContainsFunc(l.versions[id], asNew) {
		return nil
	}
	return &r
}
