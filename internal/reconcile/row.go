package reconcile

import (
	"slices"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// States of a row that are no version of it. No row has their times.
var (
	notShown = rowset.Version{Millis: schemas.MaxInstant.Millis() + 1}
	// Rejected is a version that cannot be published, Several are more versions than one in a single read.
	Rejected = rowset.Version{Millis: schemas.MaxInstant.Millis() + 2}
	Several  = rowset.Version{Millis: schemas.MaxInstant.Millis() + 3}
)

// suspect is a row that differed when it was last looked at, or that is named.
type suspect struct {
	// shown are the states other than notShown that First and the looks have shown, sighted is set if another
	// read has shown the row. row or reject is the state that the source shows now. Both are nil if it does not
	// show the row.
	//
	// A version that only another read has shown does not clear the suspect: the topic may have it from before,
	// and that read went to a copy that lags.
	shown   []rowset.Version
	sighted bool
	row     *schemas.Record
	reject  *schemas.Reject
	seen    Confirmation[rowset.Version] // of the states at looks and other reads. First is none of them
	// topic is the version of the topic's newest record, if inTopic. topicBefore is its value at the look
	// before.
	inTopic     bool
	topic       rowset.Version
	topicBefore rowset.Version
	// underWay is set if the last look showed that the row is (update).
	underWay bool
	// created is the day on which a source that is read by day has the row, MinInstant if unknown. topicRead is
	// set once a look has read it in the topic's record.
	created   schemas.Instant
	topicRead bool
	// strays are the partitions with a record of the row that does not belong there.
	strays []int32
	letter bool // it has a dead letter
	named  bool // it stays a suspect even if it does not differ
}

// size is about how many bytes s takes.
func (s *suspect) size() int {
	n := 400 + 24*len(s.shown) + 4*len(s.strays)
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
	case s.reject != nil:
		return Unpublishable
	case s.row == nil && (s.sighted || len(s.shown) > 0):
		return Unknown
	case s.row == nil && (s.inTopic || len(s.strays) > 0):
		return Extra
	case s.row != nil && !s.inTopic:
		return Missing
	case s.row != nil && (s.state() != s.topic || len(s.strays) > 0):
		return Stale
	case s.letter:
		return Leftover
	}
	return ""
}

// state is the state of the row that the source shows now.
func (s *suspect) state() rowset.Version {
	switch {
	case s.reject != nil:
		return Rejected
	case s.row != nil:
		return versionOfRow(s.row)
	}
	return notShown
}

// counts reports whether the difference counts. If the source catches up, no look shows a state that is older
// than one before. So one look proves a row that is no older than the topic's.
func (s *suspect) counts(cfg Config) bool {
	if cfg.CatchesUp && s.row != nil && (!s.inTopic || s.row.UpdatedAt.Millis() >= s.topic.Millis) {
		return s.seen.State() == s.state()
	}
	return s.seen.Counts(s.state(), cfg.Overlap)
}

func (s *suspect) difference(id int64, cfg Config) Difference {
	return Difference{Kind: s.kind(), ID: id, Counts: s.counts(cfg), Row: s.row, Reject: s.reject,
		InTopic: s.inTopic, Letter: s.letter, Strays: slices.Clone(s.strays)}
}

// toLookUp returns where to look for the row in the source.
func (s *suspect) toLookUp(id int64) Suspect {
	updated := schemas.MinInstant
	switch {
	case s.reject != nil:
		updated = s.reject.UpdatedAt
	case s.row != nil:
		updated = s.row.UpdatedAt
	case s.inTopic:
		updated = schemas.InstantOfMillis(s.topic.Millis)
	}
	return Suspect{ID: id, UpdatedAt: updated, CreatedAt: s.created}
}

// fold takes a newer record of the topic. A value that another program wrote has no created_at. Then the
// known created_at stays.
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

// foldStray adds the partition of the stray p, or takes it out if p is a tombstone.
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
	v := versionOfRow(row)
	s.note(v)
	if s.row == nil || row.UpdatedAt >= s.row.UpdatedAt && versionOfRow(s.row) != v {
		s.become(cfg, row)
	}
}

// update notes what the source showed of the row in one look between two times: versions, and reject if the
// row cannot be published.
//
// It reports whether the row is under way: the row changed since the look before, and the topic got a version
// from between the two looks. No look has met that version, but the source has moved on, and the pipeline
// will follow. A version that the topic had already at the look before proves nothing. Another producer may
// have written it, after the source had shown an older state.
func (s *suspect) update(cfg Config, versions []schemas.Record, reject *schemas.Reject, from,
	to time.Time) (underWay bool) {
	delivered, before := s.topic != s.topicBefore, s.row
	s.topicBefore, s.row, s.reject = s.topic, nil, reject
	var newest *schemas.Record
	for i := range versions {
		s.note(versionOfRow(&versions[i]))
		if newest == nil || versions[i].UpdatedAt >= newest.UpdatedAt {
			newest = &versions[i]
		}
	}
	if reject != nil {
		s.note(Rejected)
	} else if newest != nil {
		s.become(cfg, newest)
	}
	s.seen.Shown(s.state(), from, to)
	return before != nil && s.row != nil && versionOfRow(before) != s.state() && delivered && s.inTopic &&
		len(s.strays) == 0 && !s.letter && !s.named &&
		before.UpdatedAt.Millis() <= s.topic.Millis && s.topic.Millis < s.row.UpdatedAt.Millis()
}

// note remembers that a read has shown this state.
func (s *suspect) note(state rowset.Version) {
	if !slices.Contains(s.shown, state) {
		s.shown = append(s.shown, state)
	}
}

// become makes row the version that the source shows.
func (s *suspect) become(cfg Config, row *schemas.Record) {
	kept := *row
	kept.Value = slices.Clone(row.Value)
	s.row = &kept
	if created := cfg.CreatedAt(kept.Value); created > schemas.MinInstant {
		s.created = created
	}
}

// delivered reports whether the topic has a version that the source showed, or whether neither the topic nor
// any read of the source had the row. A stray beside it is still a difference, because no poll takes it out,
// and so is a dead letter.
func (s *suspect) delivered() bool {
	switch {
	case len(s.strays) > 0, s.letter, s.named, s.reject != nil:
		return false
	case !s.inTopic:
		return !s.sighted && len(s.shown) == 0
	}
	return slices.Contains(s.shown, s.topic)
}

func versionOfRow(row *schemas.Record) rowset.Version {
	return rowset.VersionOf(row.UpdatedAt, schemas.Hash(row.Value))
}
