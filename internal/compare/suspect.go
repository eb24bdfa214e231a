package compare

import (
	"slices"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// suspect is a row that differed when it was last looked at.
type suspect struct {
	// shown are the versions that the source has shown. row is the one that it shows since `since`. Nil if it
	// does not show the row.
	shown []rowset.Version
	row   *schemas.Record
	since time.Time
	// restarts makes the next look set since again (Restart).
	restarts bool
	// topic is the version of the topic's newest record, if inTopic. topicBefore is its value at the look
	// before.
	inTopic     bool
	topic       rowset.Version
	topicBefore rowset.Version
	// created is the day on which a source that is read by day has the row, MinInstant if unknown. topicRead is
	// set once a look has read it in the topic's record.
	created   schemas.Instant
	topicRead bool
	// strays are the partitions with a record of the row that does not belong there.
	strays []int32
}

// size is about how many bytes s takes.
func (s *suspect) size() int {
	n := 400 + 24*len(s.shown) + 4*len(s.strays)
	if s.row != nil {
		n += len(s.row.Value)
	}
	return n
}

func (s *suspect) kind() Kind {
	switch {
	case s.row == nil && len(s.shown) > 0:
		return Unknown
	case s.row == nil:
		return Extra
	case !s.inTopic:
		return Missing
	}
	return Stale
}

func (s *suspect) difference(id int64) Difference {
	d := Difference{Kind: s.kind(), ID: id, Row: s.row, Since: s.since, CreatedAt: s.created,
		Strays: slices.Clone(s.strays)}
	if s.inTopic {
		d.TopicMillis = s.topic.Millis
	}
	return d
}

// toLookUp returns where to look for the row in the source.
func (s *suspect) toLookUp(id int64) Suspect {
	updated := schemas.MinInstant
	if s.row != nil {
		updated = s.row.UpdatedAt
	} else if s.inTopic {
		updated = schemas.InstantOfMillis(s.topic.Millis)
	}
	return Suspect{ID: id, UpdatedAt: updated, CreatedAt: s.created}
}

// fold takes a newer record of the topic.
func (s *suspect) fold(p watermark.Published) {
	if p.Stray {
		s.strays = foldStray(s.strays, p)
		return
	}
	if s.inTopic = !p.Tombstone; !s.inTopic {
		return
	}
	s.topic, s.topicRead = rowset.VersionOf(p.UpdatedAt, p.Hash), true
	if p.CreatedAt > schemas.MinInstant && s.row == nil {
		s.created = p.CreatedAt
	}
}

// foldStray adds the partition of the stray p, or takes it out where p is a tombstone.
func foldStray(partitions []int32, p watermark.Published) []int32 {
	i := slices.Index(partitions, p.Partition)
	switch {
	case p.Tombstone && i >= 0:
		return slices.Delete(partitions, i, i+1)
	case !p.Tombstone && i < 0:
		return append(partitions, p.Partition)
	}
	return partitions
}

// show notes a version from the first reading of the source. Of two versions the newer one is the row: a
// source may show an older one beside it.
func (s *suspect) show(cfg Config, row *schemas.Record) {
	v := s.note(row)
	if s.row == nil || row.UpdatedAt >= s.row.UpdatedAt && versionOfRow(s.row) != v {
		s.become(cfg, row)
	}
}

// update notes the versions of the row that the source showed in one look. There are none if the source has
// no such row.
//
// It reports whether the row is under way: the row changed since the look before, and the topic got a version
// from between the two looks. No look has met that version, but the source has moved on, and the pipeline
// will follow. A version that the topic had already at the look before proves nothing. Another producer may
// have written it, after the source had shown an older state.
func (s *suspect) update(cfg Config, found []schemas.Record) (underWay bool) {
	delivered := s.topic != s.topicBefore
	s.topicBefore = s.topic
	if s.restarts {
		s.since, s.restarts = cfg.Now(), false
	}
	if len(found) == 0 {
		if s.row != nil {
			s.row, s.since = nil, cfg.Now()
		}
		return false
	}
	newest := &found[0]
	for i := range found {
		s.note(&found[i])
		if found[i].UpdatedAt >= newest.UpdatedAt {
			newest = &found[i]
		}
	}
	before := s.row
	if before != nil && versionOfRow(before) == versionOfRow(newest) {
		return false
	}
	s.become(cfg, newest)
	return delivered && before != nil && s.inTopic && len(s.strays) == 0 &&
		before.UpdatedAt.Millis() <= s.topic.Millis && s.topic.Millis < newest.UpdatedAt.Millis()
}

// note remembers that the source showed this version.
func (s *suspect) note(row *schemas.Record) rowset.Version {
	v := versionOfRow(row)
	if !slices.Contains(s.shown, v) {
		s.shown = append(s.shown, v)
	}
	return v
}

// become makes row the version that the source shows.
func (s *suspect) become(cfg Config, row *schemas.Record) {
	kept := *row
	kept.Value = slices.Clone(row.Value)
	s.row, s.since = &kept, cfg.Now()
	if created := cfg.CreatedAt(kept.Value); created > schemas.MinInstant {
		s.created = created
	}
}

// delivered reports whether the topic has a version that the source showed, or whether neither the topic nor
// any reading of the source had the row. A stray beside it is still a difference, because no poll takes it
// out.
func (s *suspect) delivered() bool {
	if len(s.strays) > 0 {
		return false
	}
	if !s.inTopic {
		return len(s.shown) == 0
	}
	return slices.Contains(s.shown, s.topic)
}

func versionOfRow(row *schemas.Record) rowset.Version {
	return rowset.VersionOf(row.UpdatedAt, schemas.Hash(row.Value))
}
