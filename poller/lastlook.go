package poller

import (
	"context"
	"maps"
	"slices"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// lookNow looks at the suspects, and at the rows that could not be published, here and now.
func (p *Poller) lookNow(ctx context.Context, stop <-chan struct{}) error {
	s := p.sweep
	s.fresh, s.asked = nil, false
	if err := s.cmp.Look(ctx); err != nil || s.asked || len(s.dead)+len(s.well) == 0 {
		return err
	}
	return p.lookUp(ctx, stop, nil, func([]schemas.Record, []schemas.Reject) {})
}

// lookUp looks rows up by the poller's own source. What the sweep read a while ago and could not publish is among them: by now it may be well, and a
// letter of it would stay until somebody changes the row. So are the rows that have a letter and seemed to be well, or gone, for the same reason the other
// way round.
func (p *Poller) lookUp(ctx context.Context, stop <-chan struct{}, suspects []compare.Suspect, take func([]schemas.Record, []schemas.Reject)) error {
	s := p.sweep
	list, known := p.toLookUp(suspects)
	bad, good := map[int64]schemas.Reject{}, map[int64]schemas.Instant{}
	s.everywhere = true
	if len(list) > 0 {
		wanted := map[int64]bool{}
		for _, x := range list {
			wanted[x.ID] = true
		}
		err := p.read(ctx, stop, Request{Kind: Lookup, Suspects: list, Started: schemas.InstantOf(p.Now())}, func(b Batch) error {
			take(b.Rows, b.Rejects)
			for _, row := range b.Rows {
				if newest, there := good[row.ID]; wanted[row.ID] && (!there || row.UpdatedAt > newest) {
					good[row.ID] = row.UpdatedAt
				}
			}
			for _, r := range b.Rejects {
				if before, there := bad[r.ID]; r.HasID && wanted[r.ID] && (!there || r.UpdatedAt >= before.UpdatedAt) {
					bad[r.ID] = r
				}
			}
			if b.Done != nil {
				s.everywhere = b.Done.Complete
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	maps.DeleteFunc(bad, func(id int64, r schemas.Reject) bool {
		newer, there := good[id]
		return there && r.UpdatedAt <= newer // an older version, which the source showed beside the row
	})
	if !s.everywhere {
		// Those of which no day is known were not looked for: nobody can say that they are well.
		for i := range s.dead {
			if r := &s.dead[i]; r.HasID && r.UpdatedAt == schemas.MinInstant {
				known = append(known, *r)
			}
		}
	}
	s.fresh, s.asked = append(known, slices.Collect(maps.Values(bad))...), true
	return nil
}

// toLookUp is what to look up beside the suspects, and the rejects that need no looking up: those without an id, and those of which the letter is there
// already.
func (p *Poller) toLookUp(suspects []compare.Suspect) (list []Suspect, known []schemas.Reject) {
	s := p.sweep
	list, listed := suspectsOf(suspects), map[int64]bool{}
	for _, x := range suspects {
		listed[x.ID] = true
	}
	add := func(x Suspect) {
		if !listed[x.ID] {
			listed[x.ID] = true
			list = append(list, x)
		}
	}
	for i := range s.dead {
		r := &s.dead[i]
		if was, there := p.letters[watermark.DeadLetterKey(p.Resource.Name, *r)]; !r.HasID || there && was == watermark.DeadLetterHash(r.Row) {
			known = append(known, *r)
		} else {
			add(Suspect{ID: r.ID, UpdatedAt: r.UpdatedAt, CreatedAt: schemas.MinInstant})
		}
	}
	for _, x := range s.well {
		add(x)
	}
	return list, known
}

// bury keeps rows that cannot be published, for mend to look at again.
func (s *sweep) bury(rejects []schemas.Reject) {
	for _, r := range rejects {
		if len(s.dead) == maxDead {
			s.uncertain = true
			return
		}
		s.dead = append(s.dead, r)
	}
}

// lettered are the rows that have a dead letter, by id; on which day they are nobody knows yet.
func lettered(letters map[string]uint64) map[int64]Suspect {
	rows := map[int64]Suspect{}
	for key := range letters {
		if id, ok := watermark.DeadLetterRow(key); ok {
			rows[id] = Suspect{ID: id, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.MinInstant}
		}
	}
	return rows
}

// meet notes where rows that have a letter are found.
func (s *sweep) meet(rows []schemas.Record, createdAt func([]byte) schemas.Instant) {
	for i := range rows {
		if len(s.well) == 0 {
			return
		}
		if _, has := s.well[rows[i].ID]; has {
			s.well[rows[i].ID] = Suspect{ID: rows[i].ID, UpdatedAt: rows[i].UpdatedAt, CreatedAt: createdAt(rows[i].Value)}
		}
	}
}
