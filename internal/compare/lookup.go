package compare

import (
	"maps"
	"slices"

	"github.com/storestream/storestream/schemas"
)

// Lookup collects what the source shows of named rows.
type Lookup struct {
	// wanted rows are in here; true: their content is kept.
	wanted map[int64]bool
	rows   map[int64][]schemas.Record // every version shown
	reject map[int64]schemas.Reject   // the newest version shown that cannot be published
}

// NewLookup collects the versions of the suspects. Of the others it only finds out whether they can be
// published.
func NewLookup(suspects, others []Suspect) *Lookup {
	l := &Lookup{wanted: map[int64]bool{}, rows: map[int64][]schemas.Record{},
		reject: map[int64]schemas.Reject{}}
	for _, s := range others {
		l.wanted[s.ID] = false
	}
	for _, s := range suspects {
		l.wanted[s.ID] = true
	}
	return l
}

// Take takes a batch of what the source shows. Rows that nobody asked for it passes over.
func (l *Lookup) Take(rows []schemas.Record, rejects []schemas.Reject) {
	for _, row := range rows {
		content, wanted := l.wanted[row.ID]
		if !wanted {
			continue
		}
		if content {
			row.Value = slices.Clone(row.Value)
		} else {
			row.Value = nil
		}
		l.rows[row.ID] = append(l.rows[row.ID], row)
	}
	for _, r := range rejects {
		before, there := l.reject[r.ID]
		if _, wanted := l.wanted[r.ID]; wanted && r.HasID && (!there || r.UpdatedAt >= before.UpdatedAt) {
			l.reject[r.ID] = r
		}
	}
}

// Rejects returns the rows that cannot be published.
func (l *Lookup) Rejects() (list []schemas.Reject) {
	for _, id := range slices.Sorted(maps.Keys(l.reject)) {
		if l.unpublishable(id) {
			list = append(list, l.reject[id])
		}
	}
	return list
}

// unpublishable says whether the row cannot be published. A good version at least as new as the bad one means
// that it can: the source showed an older version beside the row.
func (l *Lookup) unpublishable(id int64) bool {
	r, bad := l.reject[id]
	asNew := func(row schemas.Record) bool { return row.UpdatedAt >= r.UpdatedAt }
	return bad && !slices.ContainsFunc(l.rows[id], asNew)
}
