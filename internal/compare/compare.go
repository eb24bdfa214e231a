// Package compare finds where a topic and its source differ, while rows go on changing in both.
//
// It reads the topic in full, then the source in full along a dimension that never changes, and holds one against the other: First. What
// differs then is a suspect, because most of it is only under way: read from the source before its upsert came, or published between
// the two readings. So suspects are looked at again, in the topic and in the source (Look), with some time for the pipeline in between.
// A suspect is cleared when the topic's newest record is a version that the source showed in any look: then the pipeline has
// delivered it. What is left after a few looks differs. A record that somebody put into the topic is never such a version, however new it
// calls itself.
//
// Comparing changes nothing. The memory it takes is 24 bytes a row during First, and what the suspects take.
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

// Config says what to compare. All functions but Letters are needed.
type Config struct {
	// Start is from where on the source is compared: rows updated before it are not in the topic. MinInstant: all.
	Start schemas.Instant
	// Topic gives the newest committed records to fold, from the offsets given (nil: all of them) to where the topic ends now, and returns
	// those ends.
	Topic func(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error)
	// Source gives every row (suspects nil), or at least those of the suspects that there are; in batches that are good until take returns.
	// It returns an error where it cannot be sure to have met every row.
	Source func(ctx context.Context, suspects []Suspect, take func(rows []schemas.Record, rejects []schemas.Reject)) error
	// CreatedAt is the created_at in a row's value, MinInstant where it cannot be read.
	CreatedAt func(value []byte) schemas.Instant
	// DeadLetters is the ids that have a dead letter. A row that differs and has one counts as a dead letter. nil: none has.
	DeadLetters func(ctx context.Context) (map[int64]bool, error)
	Now         func() time.Time
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

// Kinds is all kinds, in the order in which people read them.
func Kinds() []Kind { return []Kind{Missing, Stale, Extra} }

// Difference is one row that differs.
type Difference struct {
	Kind Kind
	ID   int64
	// Row is the source's row at the last look; nil for Extra.
	Row *schemas.Record
	// Since is from when on the source has shown Row as it is, and no other version; of Extra: from when on it has shown none.
	Since time.Time
	// TopicMillis is the updated_at of the topic's newest record, in milliseconds since the epoch. Of Missing it means nothing.
	TopicMillis int64
	// CreatedAt is by which day a source that is read by day looks for the row; MinInstant where that is unknown.
	CreatedAt schemas.Instant
	// Strays are the partitions where a record of the row lies that does not belong there (watermark.Stray). The row differs by them even where its own
	// record is right.
	Strays []int32
}

// Comparison compares one resource, once. It is for one goroutine at a time.
type Comparison struct {
	cfg Config
	// topic is the newest record of each id; marked: met in the source. absent is the rows of the source that it has not. Both are dropped
	// at the end of First.
	topic, absent *rowset.Set
	ends          []int64
	// strays are the partitions where a record of a row lies that does not belong there, during First; at most MaxSuspects rows.
	strays  map[int64][]int32
	letters map[int64]bool
	counted map[int64]bool // of the source's rows, those that are dead letters

	suspects  map[int64]*suspect
	untracked map[Kind]int // suspects over MaxSuspects, by the kind they had
	report    Report
}

// Report is the figures of a comparison.
type Report struct {
	// SourceRows and TopicRows were compared; DeadLetters of the source's rows cannot be published. Nameless of those have no usable id, so that
	// nobody can say which row of the topic each is.
	SourceRows, TopicRows, DeadLetters, Nameless int
	// InFlight differed at first and did not at a later look.
	InFlight int
	// Untracked differed at the first look and were too many to look at again. They count as different.
	Untracked int
	// Foreign are the records with a key that is no row's: no difference, but consumers meet them.
	Foreign int
}

// New prepares a comparison.
func New(cfg Config) *Comparison {
	if cfg.MaxSuspects == 0 {
		cfg.MaxSuspects = 100_000
	}
	if cfg.DeadLetters == nil {
		cfg.DeadLetters = func(context.Context) (map[int64]bool, error) { return nil, nil }
	}
	return &Comparison{cfg: cfg, topic: rowset.New(0), absent: rowset.New(0), counted: map[int64]bool{}, suspects: map[int64]*suspect{}, untracked: map[Kind]int{}, strays: map[int64][]int32{}}
}

// Suspects is how many rows differ for now, those that are not looked at again left out.
func (c *Comparison) Suspects() int { return len(c.suspects) }

// Forget ends the looking at a row: whoever compares has dealt with it.
func (c *Comparison) Forget(id int64) { delete(c.suspects, id) }

// Differences is what differs still, by id.
func (c *Comparison) Differences() []Difference {
	var found []Difference
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		s := c.suspects[id]
		d := Difference{Kind: s.kind(), ID: id, Row: s.row, Since: s.since, CreatedAt: s.created, Strays: slices.Clone(s.strays)}
		if s.inTopic {
			d.TopicMillis = s.topic.Millis
		}
		found = append(found, d)
	}
	return found
}

// Count is how many rows differ, by kind, those included that were too many to look at again.
func (c *Comparison) Count() map[Kind]int {
	count := maps.Clone(c.untracked)
	for _, s := range c.suspects {
		count[s.kind()]++
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
