package compare

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// suspect is a row that differed when it was last looked at.
type suspect struct {
	// shown are the versions that the source showed. row is what it shows, since when; nil: it has no such row now.
	shown []rowset.Version
	row   *schemas.Record
	since time.Time
	// inTopic and topic are the topic's newest record.
	inTopic bool
	topic   rowset.Version
	created schemas.Instant
	// strays are the partitions where a record of it lies that does not belong there.
	strays []int32
}

func (s *suspect) kind() Kind {
	switch {
	case s.row == nil:
		return Extra
	case !s.inTopic:
		return Missing
	}
	return Stale
}

// suspect is the suspect id, made if there is room; nil: there is none.
func (c *Comparison) suspect(id int64, known bool, v rowset.Version) *suspect {
	s := c.suspects[id]
	if s == nil {
		if len(c.suspects) >= c.cfg.MaxSuspects {
			return nil
		}
		v.Marked = false
		s = &suspect{inTopic: known, topic: v, created: schemas.MinInstant, since: c.cfg.Now(), strays: c.strays[id]}
		c.suspects[id] = s
	}
	return s
}

// fold takes a record of the topic that may be newer than what is known. A value that is not ours has no created_at: the one before it stands.
func (c *Comparison) fold(p watermark.Published) {
	s := c.suspects[p.ID]
	if s == nil || p.Foreign {
		return
	}
	if p.Stray {
		s.strays = stray(s.strays, p)
		return
	}
	if s.inTopic = !p.Tombstone; !s.inTopic {
		return
	}
	s.topic = rowset.Version{Millis: p.UpdatedAt.Millis(), Hash: p.Hash}
	if p.CreatedAt > schemas.MinInstant && s.row == nil {
		s.created = p.CreatedAt
	}
}

// stray is partitions with p's in it, or without where p is a tombstone.
func stray(partitions []int32, p watermark.Published) []int32 {
	i := slices.Index(partitions, p.Partition)
	switch {
	case p.Tombstone && i >= 0:
		return slices.Delete(partitions, i, i+1)
	case !p.Tombstone && i < 0:
		return append(partitions, p.Partition)
	}
	return partitions
}

// show notes a version that the source has shown. Of two in one reading the newer one is the row: a source may return an older one beside it.
func (s *suspect) show(cfg Config, row *schemas.Record) {
	v := versionOf(row)
	if !slices.Contains(s.shown, v) {
		s.shown = append(s.shown, v)
	}
	if s.row == nil || row.UpdatedAt >= s.row.UpdatedAt && versionOf(s.row) != v {
		s.take(cfg, row)
	}
}

// take makes row the one that the source showed last.
func (s *suspect) take(cfg Config, row *schemas.Record) {
	kept := *row
	kept.Value = slices.Clone(row.Value)
	s.row, s.since = &kept, cfg.Now()
	if created := cfg.CreatedAt(kept.Value); created > schemas.MinInstant {
		s.created = created
	}
}

func versionOf(row *schemas.Record) rowset.Version {
	return rowset.Version{Millis: row.UpdatedAt.Millis(), Hash: schemas.Hash(row.Value)}
}

// Look looks at the suspects again: in the topic, then those that differ still in the source.
//
// In this order, because then the pipeline has had all the time since the last look to deliver what the source showed there, and what the source
// shows now needs no delivering. The other way round a row that changes in every moment might be published between the two readings, in a version
// that no look has met, again and again. A look that fails, or is cut short, leaves the suspects as they were; it may be tried again.
func (c *Comparison) Look(ctx context.Context) error {
	if len(c.suspects) == 0 {
		return nil
	}
	ends, err := c.cfg.Topic(ctx, c.ends, func(p watermark.Published) error {
		c.fold(p)
		return nil
	})
	if err != nil {
		return err
	}
	c.ends = ends
	c.clear(func(s *suspect) bool { return s.delivered() })
	if len(c.suspects) == 0 {
		return nil
	}
	found, unpublishable, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if c.letters, err = c.cfg.DeadLetters(ctx); err != nil {
		return err
	}
	moved := map[*suspect]bool{}
	for id, s := range c.suspects {
		if unpublishable[id] || c.letters[id] && len(found[id]) > 0 {
			c.letter(id)
			delete(c.suspects, id)
		} else {
			moved[s] = s.update(c.cfg, found[id])
		}
	}
	c.clear(func(s *suspect) bool { return s.delivered() || moved[s] })
	return nil
}

// clear drops the suspects that need no more looking at.
func (c *Comparison) clear(is func(*suspect) bool) {
	for id, s := range c.suspects {
		if is(s) {
			c.report.InFlight++
			delete(c.suspects, id)
		}
	}
}

// ask looks the suspects up in the source.
func (c *Comparison) ask(ctx context.Context) (found map[int64][]schemas.Record, unpublishable map[int64]bool, err error) {
	var list []Suspect
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		s := c.suspects[id]
		updated := schemas.MinInstant
		if s.row != nil {
			updated = s.row.UpdatedAt
		} else if s.topic.Millis != schemas.MinInstant.Millis() {
			updated = schemas.InstantOfMillis(s.topic.Millis)
		}
		list = append(list, Suspect{ID: id, UpdatedAt: updated, CreatedAt: s.created})
	}
	found, unpublishable = map[int64][]schemas.Record{}, map[int64]bool{}
	bad := map[int64]schemas.Instant{}
	err = c.cfg.Source(ctx, list, func(rows []schemas.Record, rejects []schemas.Reject) {
		for i := range rows {
			if c.suspects[rows[i].ID] != nil {
				kept := rows[i]
				kept.Value = slices.Clone(kept.Value)
				found[kept.ID] = append(found[kept.ID], kept)
			}
		}
		for i := range rejects {
			if r := &rejects[i]; r.HasID {
				if newest, there := bad[r.ID]; !there || r.UpdatedAt > newest {
					bad[r.ID] = r.UpdatedAt
				}
			}
		}
	})
	for id, updated := range bad { // unless it is an older version, which the source showed beside the row
		unpublishable[id] = !slices.ContainsFunc(found[id], func(row schemas.Record) bool { return row.UpdatedAt >= updated })
	}
	return found, unpublishable, err
}

// update takes what the source showed of the row in one look, nothing where it has no such row. It says whether the row is under way: it changed since
// the look before, and the topic has a version from between the two. No look has met that one, but the source has moved on since, and
// the pipeline will.
func (s *suspect) update(cfg Config, found []schemas.Record) (underWay bool) {
	if len(found) == 0 {
		if s.row != nil {
			s.row, s.since = nil, cfg.Now()
		}
		return false
	}
	newest := &found[0]
	for i := range found {
		if v := versionOf(&found[i]); !slices.Contains(s.shown, v) {
			s.shown = append(s.shown, v)
		}
		if found[i].UpdatedAt >= newest.UpdatedAt {
			newest = &found[i]
		}
	}
	before := s.row
	if before != nil && versionOf(before) == versionOf(newest) {
		return false
	}
	s.take(cfg, newest)
	return before != nil && s.inTopic && len(s.strays) == 0 && before.UpdatedAt.Millis() <= s.topic.Millis && s.topic.Millis < newest.UpdatedAt.Millis()
}

// delivered: the topic has what the source showed, or neither has the row; and no stray stands beside it, which no poll takes out.
func (s *suspect) delivered() bool {
	if len(s.strays) > 0 {
		return false
	}
	if !s.inTopic {
		return s.row == nil
	}
	return slices.ContainsFunc(s.shown, func(v rowset.Version) bool { return s.topic.Equal(v.Millis, v.Hash) })
}
