package storefake

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Backup is all rows as they were at one moment, and which ids had been given out.
type Backup struct {
	At     time.Time // by the service's clock
	tables *Tables   // never changed
	tag    string    // of the tables in PostgreSQL
}

// Restored reports the effect of a restore, by resource and id. For the tables in PostgreSQL it includes rows
// that others have written.
type Restored struct {
	Back map[string]map[int64]time.Time // the restored updated_at of each row
	Gone map[string][]int64             // rows that no longer exist
}

func newRestored() *Restored {
	return &Restored{Back: map[string]map[int64]time.Time{}, Gone: map[string][]int64{}}
}

// back notes a row and its restored updated_at. Null is the zero time.
func (r *Restored) back(resource string, id int64, at time.Time) {
	if r.Back[resource] == nil {
		r.Back[resource] = map[int64]time.Time{}
	}
	r.Back[resource][id] = at.UTC()
}

// Backup copies all rows. It waits until no transaction holds a row.
func (s *Store) Backup(ctx context.Context) (*Backup, error) {
	release, err := s.locks.takeRange(ctx, everyResource, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer release()
	b := &Backup{At: s.clock.Now(), tables: s.tables.clone(), tag: fmt.Sprintf("_backup_%d", s.backups.Add(1))}
	if s.mirror != nil {
		if err := s.mirror.backup(ctx, b.tag); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// restore brings the rows back to the backup. Later changes are gone, and ids given out since are given out
// again. In PostgreSQL this is one transaction of the administrator's, as if a dump were loaded: the server
// stays the same, and the rows get the id of that transaction. It waits until no transaction holds a row.
func (s *Store) restore(ctx context.Context, b *Backup) (*Restored, error) {
	release, err := s.locks.takeRange(ctx, everyResource, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer release()
	did := s.tables.against(b.tables)
	if s.mirror != nil {
		inDatabase, err := s.mirror.restore(ctx, b.tag)
		if err != nil {
			return nil, err
		}
		for _, res := range mirroredResources() { // others write to the tables too, and memory does not know it
			did.Back[res.name], did.Gone[res.name] = inDatabase.Back[res.name], inDatabase.Gone[res.name]
		}
	}
	s.replicas.make(func(ts *Tables) { ts.replace(b.tables) })
	return did, nil
}

// against compares ts with then and returns the effect of a restore to then. The caller makes sure that ts
// does not change meanwhile. then never changes.
func (ts *Tables) against(then *Tables) *Restored {
	did := newRestored()
	for name := range ts.byName {
		now := map[int64][]cell{}
		ts.each(name, func(_ *resource, row []cell) { now[int64(row[0])] = slices.Clone(row) })
		then.each(name, func(res *resource, row []cell) {
			id := int64(row[0])
			if !slices.Equal(now[id], row) {
				at := time.Time{}
				if updated := row[res.updated()]; updated != null {
					at = updated.time()
				}
				did.back(name, id, at)
			}
			delete(now, id)
		})
		for id := range now {
			did.Gone[name] = append(did.Gone[name], id)
		}
	}
	return did
}

// Restore gives the service its rows back as they were at the time of the backup, which may be used again.
// Replicas get there when their lag is over.
func (f *Fake) Restore(ctx context.Context, b *Backup) (*Restored, error) {
	did, err := f.restore(ctx, b)
	if err != nil {
		return nil, err
	}
	f.closeBook()
	return did, nil
}
