package reconcile

import (
	"slices"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// States of a row that are no version of it: it was not shown, or it cannot be published. No row has their
// times.
var (
	notShown = rowset.Version{Millis: schemas.MaxInstant.Millis() + 1}
	rejected = rowset.Version{Millis: schemas.MaxInstant.Millis() + 2}
)

// suspect is a row that differed when it was last looked at, or that is named.
type suspect struct {
	// shown is the newest state that the last reading showed, of this updated_at. MinInstant means none.
	shown   rowset.Version
	updated schemas.Instant
	// row or reject is that state. Both are nil if it is notShown, or while only its version is known, from the
	// first reading. Then unseen is about how many bytes the other takes.
	row    *schemas.Record
	reject *schemas.Reject
	unseen int
	// versions are the states that First and the looks have shown, without notShown. elsewhere is set if another
	// read has shown the row (Comparison.See).
	//
	// A version that only another read has shown does not clear the suspect: the topic may have it from before,
	// and that read went to a copy that lags. sight is the last such version, and sightAt when it was shown.
	versions     []rowset.Version
	elsewhere    bool
	sight        rowset.Version
	sightAt      time.Time
	confirmation Confirmation // by looks and other reads. First confirms nothing
	// topic is the version of the topic's newest record, if inTopic. topicBefore is its value at the look
	// before.
	inTopic     bool
	topic       rowset.Version
	topicBefore rowset.Version
	underWay    bool // at the last look (update)
	// unmet is the topic's version, if First should have met the row and did not. It is zero otherwise.
	unmet rowset.Version
	// created is the day on which a source that is read by day has the row, MinInstant if unknown.
	created schemas.Instant
	// newest is the topic's newest record of a row that is named, a tombstone too. It is nil if there is none.
	newest  *watermark.Published
	strays  []watermark.Published // its newest records in partitions of other keys
	letter  bool                  // it has a dead letter
	named   bool                  // it stays a suspect even if it does not differ
	again   bool                  // a replay wants it (Config.Again), as long as it is inTopic
	counted int                   // its bytes in Comparison.kept
}

// size is about how many bytes s takes.
func (s *suspect) size() int {
	n := 400 + 24*len(s.versions) + 300*len(s.strays) + s.unseen
	if s.row != nil {
		n += len(s.row.Value)
	}
	if s.reject != nil {
		n += len(s.reject.Row) + len(s.reject.Err)
	}
	return n
}

// kind returns how the row differs, or "" if it does not.
func (s *suspect) kind() Kind {
	switch {
	case s.again && s.inTopic && s.shown == s.topic:
		return Replayed
	case s.shown == rejected:
		return Unpublishable
	case s.shown == notShown && (s.elsewhere || len(s.versions) > 0):
		return Unknown
	case s.shown == notShown && (s.inTopic || len(s.strays) > 0):
		return Extra
	case s.isRow() && !s.inTopic:
		return Missing
	case s.isRow() && (s.shown != s.topic || len(s.strays) > 0):
		return Stale
	case s.letter:
		return Leftover
	case s.row != nil && s.topic == s.unmet:
		return Unknown
	}
	return ""
}

// isRow reports whether the source shows a row that can be published.
func (s *suspect) isRow() bool { return s.shown != notShown && s.shown != rejected }

// counts reports whether the difference counts. If the source catches up, no look shows a state that is older
// than one before. So one look proves a row that is no older than the topic's.
func (s *suspect) counts(cfg Config) bool {
	if cfg.CatchesUp && s.isRow() && (!s.inTopic || s.shown.Millis >= s.topic.Millis) {
		return s.confirmation.State() == s.shown
	}
	return s.confirmation.Counts(s.shown, cfg.Overlap)
}

func (s *suspect) difference(id int64, cfg Config) Difference {
	kind := s.kind()
	counts := kind == Replayed || kind != Unknown && s.counts(cfg)
	return Difference{Kind: kind, ID: id, Counts: counts, Row: s.row, Reject: s.reject,
		InTopic: s.inTopic, Letter: s.letter, Newest: s.newest, Strays: slices.Clone(s.strays)}
}

// toLookUp returns where to look for the row in the source.
func (s *suspect) toLookUp(id int64, cfg Config) Suspect {
	if s.row != nil {
		if created := cfg.CreatedAt(s.row.Value); created > schemas.MinInstant {
			s.created = created
		}
	}
	updated := s.updated
	if s.shown == notShown && s.inTopic {
		updated = schemas.InstantOfMillis(s.topic.Millis)
	}
	return Suspect{ID: id, UpdatedAt: updated, CreatedAt: s.created}
}

// fold takes a newer record of the topic. A value that another program wrote has no created_at. Then the
// known created_at stays. If the topic has keys of two schema ids, a row has two partitions, which are read
// in any order. Of a named row the later record counts.
func (s *suspect) fold(p watermark.Published) {
	if p.Stray {
		s.strays = slices.DeleteFunc(s.strays, func(old watermark.Published) bool {
			return old.Partition == p.Partition
		})
		if !p.Tombstone {
			s.strays = append(s.strays, p)
		}
		return
	}
	if s.named {
		if s.newest != nil && s.newest.Partition != p.Partition && p.Time <= s.newest.Time {
			return
		}
		newest := p // so that other records do not go to the heap
		s.newest = &newest
	}
	s.underWay = false // it was so of the record before
	if s.inTopic = !p.Tombstone; !s.inTopic {
		return
	}
	s.topic = rowset.VersionOf(p.UpdatedAt, p.Hash)
	if p.CreatedAt > schemas.MinInstant && !s.isRow() {
		s.created = p.CreatedAt
	}
}

// show notes that a read of the comparison shows this state, of this updated_at. It returns false if a newer
// one was shown before: a source may show an older version beside the row, also one that cannot be published.
// A good one that is as new as a bad one is the row. After true the caller sets row, reject or unseen.
func (s *suspect) show(state rowset.Version, updated schemas.Instant) bool {
	if !slices.Contains(s.versions, state) {
		s.versions = append(s.versions, state)
	}
	if s.shown != notShown && (updated < s.updated || state == rejected && s.isRow() && updated == s.updated) {
		return false
	}
	s.shown, s.updated, s.row, s.reject, s.unseen = state, updated, nil, nil, 0
	return true
}

// showRow is show for a row. It keeps a copy.
func (s *suspect) showRow(row *schemas.Record) {
	if s.show(versionOfRow(row), row.UpdatedAt) {
		kept := *row
		kept.Value = slices.Clone(row.Value)
		s.row = &kept
	}
}

// showReject is show for a row that cannot be published. It keeps a copy.
func (s *suspect) showReject(r *schemas.Reject) {
	if s.show(rejected, r.UpdatedAt) {
		kept := *r
		s.reject = &kept
	}
}

// see notes that another read has shown this state by this time.
func (s *suspect) see(state rowset.Version, at time.Time) {
	s.elsewhere, s.sight, s.sightAt = true, state, at
	if s.confirmation.State() != state {
		s.confirmation.Shown(state, at, at)
	}
}

// update takes what one look between two times has shown of the row.
//
// The row is under way if it changed since the look before, and the topic got a version from between the two
// looks. No look has met that version, but the source has moved on, and the pipeline will follow. A version
// that the topic had already at the look before proves nothing. Another producer may have written it, after
// the source had shown an older state.
func (s *suspect) update(look *suspect, from, to time.Time) {
	arrived, before := s.topic != s.topicBefore, *s
	s.topicBefore, s.row, s.reject, s.versions = s.topic, look.row, look.reject, look.versions
	s.shown, s.updated, s.unseen = look.shown, look.updated, 0
	s.confirmation.Shown(s.shown, from, to)
	if s.elsewhere && !s.sightAt.Before(from) { // beside the look: maybe after its answer
		s.see(s.sight, s.sightAt)
	}
	s.underWay = before.isRow() && s.isRow() && before.shown != s.shown && arrived &&
		before.shown.Millis <= s.topic.Millis && s.topic.Millis < s.shown.Millis
}

// delivered reports whether the topic has a version that the source showed, whether the row is under way, or
// whether neither the topic nor any read of the source had it. A stray beside it is still a difference,
// because no poll takes it out, and so is a dead letter. A row that First should have met is Unknown, as long
// as the topic gets no other version of it.
//
// A row of a replay is one until the topic has got another record of it.
func (s *suspect) delivered() bool {
	switch {
	case s.again:
		return !s.inTopic
	case len(s.strays) > 0, s.letter, s.named, s.shown == rejected:
		return false
	case !s.inTopic:
		return !s.elsewhere && len(s.versions) == 0
	}
	return s.underWay || slices.Contains(s.versions, s.topic) && s.topic != s.unmet
}

func versionOfRow(row *schemas.Record) rowset.Version {
	return rowset.VersionOf(row.UpdatedAt, schemas.Hash(row.Value))
}
