// Package compare finds where a topic and its source differ, while rows go on changing in both.
//
// It reads the topic in full, then the source in full along a dimension that never changes, and holds one against the other: First. What
// differs then is a suspect, because most of it is only under way: read from the source before its upsert came, or published between
// the two readings. So suspects are looked at again, in the source and in the topic (Look), with some time for the pipeline in between.
// A suspect is cleared when the topic's newest record is a version that the source showed in any look: then the pipeline has
// delivered it. What is left after a few looks differs. A record that somebody put into the topic is never such a version, however new it
// calls itself.
//
// Comparing changes nothing. The memory it takes is 24 bytes a row, and what the suspects take.
package compare

import (
	"context"
	"maps"
	"slices"

	"github.com/storestream/storestream/rowset"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/watermark"
)

// Config says what to compare. All functions are needed.
type Config struct {
	// Start is from where on the source is compared: rows created and updated before it are not in the topic. MinInstant: all.
	Start schemas.Instant
	// Topic gives the newest committed records to fold, from the offsets given (nil: all of them) to where the topic ends now, and returns
	// those ends.
	Topic func(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error)
	// Source gives every row (suspects nil), or at least those of the suspects that there are; in batches that are good until take returns.
	// It returns an error where it cannot be sure to have met every row.
	Source func(ctx context.Context, suspects []Suspect, take func(rows []schemas.Record, rejects []schemas.Reject)) error
	// Letters is the ids that have a dead letter.
	Letters func(ctx context.Context) (map[int64]bool, error)
	// MaxSuspects bounds what is looked at twice; 0: 100,000.
	MaxSuspects int
}

// Suspect is a row to look at again, and the days on which a source that is read by day finds it; MinInstant where unknown.
type Suspect struct {
	ID                   int64
	UpdatedAt, CreatedAt schemas.Instant
}

// Kind is how a row differs.
type Kind string

// The kinds of differences.
const (
	Missing Kind = "missing" // the source has the row, the topic has not
	Stale   Kind = "stale"   // both have it, with another content
	Extra   Kind = "extra"   // the topic has it, the source has not
)

// Difference is one row that differs.
type Difference struct {
	Kind Kind
	ID   int64
	// Row is the source's row at the last look; nil for Extra.
	Row *schemas.Record
}

// Comparison compares one resource, once.
type Comparison struct {
	cfg     Config
	topic   *rowset.Set // the newest record of each id; marked: met in the source
	ends    []int64
	letters map[int64]bool
	counted map[int64]bool // of the source's rows, those that are dead letters

	suspects  map[int64]*suspect
	untracked map[Kind]int // suspects over MaxSuspects, by the kind they had
	report    Report
}

type suspect struct {
	// shown are the versions that the source showed; the last one is row, nil where it has no such row now.
	shown []rowset.Version
	row   *schemas.Record
	// inTopic and topic are the topic's newest record.
	inTopic bool
	topic   rowset.Version
	created schemas.Instant
}

// Report is the figures of a comparison.
type Report struct {
	// SourceRows and TopicRows were compared; DeadLetters of the source's rows cannot be published and are in the dead-letter topic.
	SourceRows, TopicRows, DeadLetters int
	// InFlight differed at first and did not at a later look.
	InFlight int
	// Untracked differed at the first look and were too many to look at again. They count as different.
	Untracked int
}

// New prepares a comparison.
func New(cfg Config) *Comparison {
	if cfg.MaxSuspects == 0 {
		cfg.MaxSuspects = 100_000
	}
	return &Comparison{cfg: cfg, topic: rowset.New(0), counted: map[int64]bool{}, suspects: map[int64]*suspect{}, untracked: map[Kind]int{}}
}

// First reads both in full. progress is told how many rows of the source have been read so far; nil: nobody.
func (c *Comparison) First(ctx context.Context, progress func(rows int)) error {
	var err error
	if c.letters, err = c.cfg.Letters(ctx); err != nil {
		return err
	}
	c.ends, err = c.cfg.Topic(ctx, nil, func(p watermark.Published) error {
		if p.Tombstone {
			c.topic.Remove(p.ID)
		} else {
			c.topic.Put(p.ID, rowset.Version{Millis: p.UpdatedAt.Millis(), Hash: p.Hash})
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.report.TopicRows = c.topic.Len()
	err = c.cfg.Source(ctx, nil, func(rows []schemas.Record, rejects []schemas.Reject) {
		for i := range rows {
			c.met(&rows[i])
		}
		for i := range rejects {
			c.dead(&rejects[i])
		}
		if progress != nil {
			progress(c.report.SourceRows)
		}
	})
	if err != nil {
		return err
	}
	return c.unmet(ctx)
}

// met takes one row of the source's full reading. A source may repeat a row.
func (c *Comparison) met(row *schemas.Record) {
	version := versionOf(row)
	inTopic, known := c.topic.Get(row.ID)
	if c.suspects[row.ID] == nil && !inTopic.Marked && !c.counted[row.ID] {
		c.report.SourceRows++
	}
	if known && inTopic.Equal(version.Millis, version.Hash) {
		c.mark(row.ID, inTopic)
		return
	}
	if known {
		c.mark(row.ID, inTopic)
	} else if c.letters[row.ID] {
		c.letter(row.ID) // good by its content, but not to be published: too large
		return
	}
	if s := c.suspect(row.ID, known, inTopic); s != nil {
		s.show(row)
	} else if known {
		c.untracked[Stale]++
	} else {
		c.untracked[Missing]++
	}
}

// mark says that the source has id.
func (c *Comparison) mark(id int64, v rowset.Version) {
	if !v.Marked {
		v.Marked = true
		c.topic.Put(id, v)
	}
}

// dead takes a row that cannot be published: it counts apart, whatever the topic still holds of it.
func (c *Comparison) dead(r *schemas.Reject) {
	if !r.HasID {
		c.report.DeadLetters++
		return
	}
	c.letter(r.ID)
	if v, known := c.topic.Get(r.ID); known {
		c.mark(r.ID, v)
	}
}

// letter counts a dead letter, once.
func (c *Comparison) letter(id int64) {
	if !c.counted[id] {
		c.counted[id] = true
		c.report.DeadLetters++
	}
}

// unmet makes suspects of what the source did not have, and finds out on which day the service would look for them.
func (c *Comparison) unmet(ctx context.Context) error {
	found := false
	c.topic.Each(func(id int64, v rowset.Version) {
		if v.Marked || c.letters[id] || v.Millis < c.cfg.Start.Millis() {
			return
		}
		found = true
		if c.suspect(id, true, v) == nil {
			c.untracked[Extra]++
		}
	})
	if !found {
		return nil
	}
	ends, err := c.cfg.Topic(ctx, nil, func(p watermark.Published) error {
		c.fold(p)
		return nil
	})
	if err == nil {
		c.ends = ends
	}
	return err
}

// suspect is the suspect id, made if there is room; nil: there is none.
func (c *Comparison) suspect(id int64, known bool, v rowset.Version) *suspect {
	s := c.suspects[id]
	if s == nil {
		if len(c.suspects) >= c.cfg.MaxSuspects {
			return nil
		}
		v.Marked = false
		s = &suspect{inTopic: known, topic: v, created: schemas.MinInstant}
		c.suspects[id] = s
	}
	return s
}

// fold takes a record of the topic that may be newer than what is known.
func (c *Comparison) fold(p watermark.Published) {
	s := c.suspects[p.ID]
	if s == nil {
		return
	}
	s.inTopic = !p.Tombstone
	if s.inTopic {
		s.topic, s.created = rowset.Version{Millis: p.UpdatedAt.Millis(), Hash: p.Hash}, p.CreatedAt
	}
}

// show notes a version that the source has shown.
func (s *suspect) show(row *schemas.Record) {
	kept := *row
	kept.Value = slices.Clone(row.Value)
	s.row = &kept
	if v := versionOf(row); !slices.Contains(s.shown, v) {
		s.shown = append(s.shown, v)
	}
}

func versionOf(row *schemas.Record) rowset.Version {
	return rowset.Version{Millis: row.UpdatedAt.Millis(), Hash: schemas.Hash(row.Value)}
}

// Suspects is how many rows differ for now, those that are not looked at again left out.
func (c *Comparison) Suspects() int { return len(c.suspects) }

// Look looks at the suspects again, in the source first: a version that it shows may be in the topic a moment later, but not the other way
// round.
func (c *Comparison) Look(ctx context.Context) error {
	if len(c.suspects) == 0 {
		return nil
	}
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
		s.row = nil
	}
	unpublishable := map[int64]bool{}
	err := c.cfg.Source(ctx, list, func(rows []schemas.Record, rejects []schemas.Reject) {
		for i := range rows {
			if s := c.suspects[rows[i].ID]; s != nil {
				s.show(&rows[i])
			}
		}
		for i := range rejects {
			unpublishable[rejects[i].ID] = rejects[i].HasID
		}
	})
	if err != nil {
		return err
	}
	ends, err := c.cfg.Topic(ctx, c.ends, func(p watermark.Published) error {
		c.fold(p)
		return nil
	})
	if err != nil {
		return err
	}
	c.ends = ends
	for id, s := range c.suspects {
		switch {
		case unpublishable[id]:
			c.letter(id)
			delete(c.suspects, id)
		case s.cleared():
			c.report.InFlight++
			delete(c.suspects, id)
		}
	}
	return nil
}

// cleared: the topic has what the source showed, or neither has the row.
func (s *suspect) cleared() bool {
	if !s.inTopic {
		return s.row == nil
	}
	return slices.ContainsFunc(s.shown, func(v rowset.Version) bool { return s.topic.Equal(v.Millis, v.Hash) })
}

// Differences is what differs still, by id.
func (c *Comparison) Differences() []Difference {
	var found []Difference
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		s := c.suspects[id]
		d := Difference{Kind: Stale, ID: id, Row: s.row}
		switch {
		case s.row == nil:
			d.Kind = Extra
		case !s.inTopic:
			d.Kind = Missing
		}
		found = append(found, d)
	}
	return found
}

// Count is how many rows differ, by kind, those included that were too many to look at again.
func (c *Comparison) Count() map[Kind]int {
	count := maps.Clone(c.untracked)
	for _, d := range c.Differences() {
		count[d.Kind]++
	}
	return count
}

// Report is the figures so far.
func (c *Comparison) Report() Report {
	r := c.report
	for _, n := range c.untracked {
		r.Untracked += n
	}
	return r
}
