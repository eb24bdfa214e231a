package compare

import (
	"maps"
	"slices"

	"github.com/storestream/storestream/schemas"
)

// Lookup collects the versions of named rows that the source shows.
type Lookup struct {
	// Rows are to be looked up.
	Rows []Suspect
	// wanted has their ids; true: of a suspect, so its versions are kept.
	wanted   map[int64]bool
	versions map[int64][]schemas.Record
	rejects  map[int64]schemas.Reject // the newest version that cannot be published
}

// NewLookup collects the versions of the suspects.
func NewLookup(suspects []Suspect) *Lookup {
	l := &Lookup{wanted: map[int64]bool{}, versions: map[int64][]schemas.Record{},
		rejects: map[int64]schemas.Reject{}}
	for _, s := range suspects {
		l.Also(s)
		l.wanted[s.ID] = true
	}
	return l
}

// Also looks up another row, to find out whether it can be published.
func (l *Lookup) Also(s Suspect) {
	if _, listed := l.wanted[s.ID]; !listed {
		l.wanted[s.ID] = false
		l.Rows = append(l.Rows, s)
	}
}

// Take collects from a batch of the source's rows. It ignores rows that were not asked for. It never fails.
func (l *Lookup) Take(rows []schemas.Record, rejects []schemas.Reject) error {
	for _, row := range rows {
		if suspect, wanted := l.wanted[row.ID]; suspect {
			row.Value = slices.Clone(row.Value)
			l.versions[row.ID] = append(l.versions[row.ID], row)
		} else if wanted {
			l.versions[row.ID] = append(l.versions[row.ID], schemas.Record{UpdatedAt: row.UpdatedAt})
		}
	}
	for _, r := range rejects {
		before, there := l.rejects[r.ID]
		if _, wanted := l.wanted[r.ID]; wanted && r.HasID && (!there || r.UpdatedAt >= before.UpdatedAt) {
			l.rejects[r.ID] = r
		}
	}
	return nil
}

// Rejects returns the rows that cannot be published.
func (l *Lookup) Rejects() (list []schemas.Reject) {
	for _, id := range slices.Sorted(maps.Keys(l.rejects)) {
		if l.unpublishable(id) {
			list = append(list, l.rejects[id])
		}
	}
	return list
}

// unpublishable says whether the row cannot be published. A good version at least as new as the bad one means
// that it can: the source showed an older version beside the row.
func (l *Lookup) unpublishable(id int64) bool {
	r, bad := l.rejects[id]
	asNew := func(row schemas.Record) bool { return row.UpdatedAt >= r.UpdatedAt }
	return bad && !slices.ContainsFunc(l.versions[id], asNew)
}
