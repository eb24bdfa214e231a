// Package compare finds where a topic and its source differ, while rows go on changing in both.
//
//	First    reads the topic, then the source, along a dimension that never changes. What differs is a
//	         suspect. Most suspects are only under way: read from the source before their upsert came, or
//	         published between the two readings.
//	  |      (the pipeline gets some time)
//	Look     reads the topic on, then looks the suspects up in the source. A suspect is cleared when the
//	         topic's newest record is a version that the source showed in any reading: the pipeline
//	         delivered it.
//	  |      (again, as often as the caller wants)
//	Differences returns what is left.
//
// A record that another producer put into the topic is never such a version, however new it claims to be. So
// it is found.
//
// A row is unknown if one reading of the source showed it and a later one did not. It may have been deleted
// in between, or the later reading asked a question that does not show it. So unless the source shows it
// again, it is neither cleared as delivered nor called extra. A row is extra only if the comparison never met
// it.
//
// # Parts
//
// Config.Memory bounds what a comparison takes, however many rows there are. A row takes 24 bytes during
// First. If a table needs more and its source can be read by id, it is compared in parts, ranges of ids [a,
// b]. Each part takes one First: one scan of the topic, and one reading of these ids of the source.
//
// How ids are spread is not known beforehand. So a part begins as all ids from a on. When the topic's rows
// fill the memory, the highest eighth of the ids goes, b moves below them, and ids above b are passed over
// from then on. In the end all rows of [a, b] are held, because no row below b ever went, and the memory is
// full by about seven eighths or more. The next part begins at b+1, and the last one ends at the highest
// possible id. So the parts cover every id once, however the ids are spread, and a table of n rows takes
// about n*24 bytes / (7/8 of the room) parts at most, and one.
//
// A source that cannot be read by id has one part. If that does not fit, First fails.
//
// Comparing changes nothing.
package compare

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Config says what to compare. Everything is needed but TooLarge and MaxSuspects.
type Config struct {
	// Start is the earliest updated_at of the topic's rows. MinInstant means that the topic holds all rows.
	Start  schemas.Instant
	Topic  TopicReader
	Source SourceReader
	// CreatedAt returns the created_at in a row's value, or MinInstant if it cannot be read.
	CreatedAt func(value []byte) schemas.Instant
	// TooLarge reports whether a row is good and does not fit into a record of the topic. Such a row counts as
	// a dead letter if it differs. If TooLarge is nil, each row fits.
	TooLarge func(row *schemas.Record) bool
	Now      func() time.Time
	// MaxSuspects limits how many rows are looked at again. Zero means 100,000.
	MaxSuspects int
	// Memory limits the comparison's memory in bytes, including a batch of the source. Zero means 128 MiB.
	Memory int64
	// Records is at most how many rows the topic holds, about.
	Records func(ctx context.Context) (int64, error)
	// ByID: the source reads ranges of ids, in the order of ids. From is the first id to compare.
	ByID bool
	From int64
	// Cut ends a part before the first suspect that does not fit. The next part goes on there. It is for callers
	// that deal with a part's suspects before they begin the next part.
	Cut bool
}

// TopicReader folds the newest committed records of the topic and returns the topic's end offsets. It begins
// at the offsets from, or at the start if from is nil. If wanted is set, it passes over other ids.
type TopicReader func(ctx context.Context, from []int64, wanted func(id int64) bool,
	fold func(watermark.Published) error) (ends []int64, err error)

// SourceReader reads the source and hands its rows to take, and maybe other rows too. If suspects is nil, it
// reads every row with these ids. Otherwise it reads the suspects that exist. The rows are valid until take
// returns. It fails if it cannot be sure to have met every row, and with take's error.
type SourceReader func(ctx context.Context, ids Range, suspects []Suspect, take Take) error

// Take gets a batch of a source's rows.
type Take func(rows []schemas.Record, rejects []schemas.Reject) error

// Suspect is a row to look at again. A source that is read by day finds it on one of these days; MinInstant:
// unknown.
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
	Unknown Kind = "unknown" // the source showed it in one reading and not in a later one
)

// Kinds returns all kinds, in the order in which people read them.
func Kinds() []Kind { return []Kind{Missing, Stale, Extra, Unknown} }

// Difference is one row that differs.
type Difference struct {
	Kind Kind
	ID   int64
	// Row is the row as the source shows it. It is nil for Extra and Unknown.
	Row *schemas.Record
	// Since is the time of the first reading from which on the source has shown Row and no other version. For
	// Extra and Unknown: from which on it has not shown the row.
	Since time.Time
	// TopicMillis is the updated_at of the topic's newest record, in milliseconds since the epoch. It has
	// no meaning for Missing.
	TopicMillis int64
	// CreatedAt is the day on which a source that is read by day finds the row, or MinInstant if unknown.
	CreatedAt schemas.Instant
	// Strays are the partitions with a record of the row that does not belong there (watermark.Stray). They
	// make the row differ even where its own record is right.
	Strays []int32
}

// Report is the figures of a comparison.
type Report struct {
	// SourceRows and TopicRows were compared. DeadLetters counts the source's rows that cannot be published.
	// Nameless counts those of them that have no usable id, so they match no row of the topic.
	SourceRows, TopicRows, DeadLetters, Nameless int
	// InFlight rows differed in the first reading and no longer at a later look.
	InFlight int
	// Untracked rows differed in the first reading and were too many to look at again. They count as
	// different.
	Untracked int
	// UntrackedRows of these are rows that the source has: missing or stale ones.
	UntrackedRows int
	// Foreign records have a key that is no row's. They are no difference, but consumers meet them.
	Foreign int
	// Unread counts batches of another program that could not be read. They may hold any row's key.
	Unread int
	// Early rows of the topic are from before Start, and the source did not show them. They were not compared.
	Early int
}

// Comparison compares one resource, once, part by part. It is for one goroutine at a time.
type Comparison struct {
	cfg       Config
	part      Range          // the last one that was read
	next      int64          // the first id of the next part
	more      bool           // there is one
	parts     int            // that were begun
	ends      []int64        // how far the topic was read for every suspect
	counted   map[int64]bool // rows of the source that are counted as dead letters
	suspects  map[int64]*suspect
	kept      int          // bytes of the suspects
	untracked map[Kind]int // rows that were too many to look at again, by how they differed
	report    Report
}

// DefaultMemory is the limit if Config.Memory is zero.
const DefaultMemory = 128 << 20

// New prepares a comparison.
func New(cfg Config) *Comparison {
	cfg.MaxSuspects = cmp.Or(cfg.MaxSuspects, 100_000)
	cfg.Memory = cmp.Or(cfg.Memory, DefaultMemory)
	if !cfg.ByID {
		cfg.From = math.MinInt64
	}
	if cfg.TooLarge == nil {
		cfg.TooLarge = func(*schemas.Record) bool { return false }
	}
	return &Comparison{cfg: cfg, next: cfg.From, more: true, counted: map[int64]bool{},
		suspects: map[int64]*suspect{}, untracked: map[Kind]int{}}
}

// First reads the next part of both. It calls progress now and then. After an error only a new Comparison can
// read that part.
func (c *Comparison) First(ctx context.Context, progress func(Progress)) (err error) {
	records, err := c.cfg.Records(ctx)
	if err != nil {
		return err
	}
	c.parts++
	first := firstReading{c: c, progress: progress, part: Range{c.next, math.MaxInt64},
		rows: rowset.New(int(tableShare(c.cfg.Memory))), records: records, strays: map[int64][]int32{}}
	defer first.rows.Close()
	if err := first.read(ctx); err != nil {
		return err
	}
	c.part = first.part
	if c.more = c.part.Last < math.MaxInt64; c.more {
		c.next = c.part.Last + 1
	}
	return nil
}

// Part is the ids that the last First read. more: there are ids above them, for another First.
func (c *Comparison) Part() (ids Range, more bool) { return c.part, c.more }

// Look looks at the suspects again: in the topic, then those that differ still in the source.
//
// The topic comes first because the pipeline has then had all the time since the last look to deliver the
// versions that the source showed there. The versions that the source shows now need no delivery yet. In the
// other order, a row that changes all the time might be published between the two readings, again and again,
// in versions that no look has met.
//
// A look that fails leaves the suspects as they were. It may be tried again.
func (c *Comparison) Look(ctx context.Context) error {
	suspects, err := c.CatchUp(ctx)
	if err != nil || len(suspects) == 0 {
		return err
	}
	found := NewLookup(suspects)
	if err := c.cfg.Source(ctx, everyID, suspects, found.Take); err != nil {
		return err
	}
	c.Apply(found)
	return nil
}

// CatchUp is the first half of Look, for a caller that asks the source itself: it reads the topic on and
// returns the suspects that remain. Apply is the second half.
//
// First does not keep when a row was created. A source that is read by day has to know that day to look for a
// row that it has not shown yet. So for such suspects CatchUp reads the topic once more.
func (c *Comparison) CatchUp(ctx context.Context) ([]Suspect, error) {
	if len(c.suspects) == 0 {
		return nil, nil
	}
	isSuspect := func(id int64) bool { return c.suspects[id] != nil }
	ends, err := c.cfg.Topic(ctx, c.ends, isSuspect, c.fold)
	if err != nil {
		return nil, err
	}
	c.ends = ends
	c.clear((*suspect).delivered)
	dayless := func(s *suspect) bool { return s.inTopic && s.row == nil && !s.topicRead }
	if !c.cfg.ByID && c.some(dayless) {
		if c.ends, err = c.cfg.Topic(ctx, nil, isSuspect, c.fold); err != nil {
			return nil, err
		}
		c.clear((*suspect).delivered)
	}
	var list []Suspect
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		list = append(list, c.suspects[id].toLookUp(id))
	}
	return list, nil
}

// Apply uses a lookup of suspects that CatchUp returned, all of them or some.
func (c *Comparison) Apply(found *Lookup) {
	underWay := map[*suspect]bool{}
	for id, s := range c.suspects {
		rows := found.versions[id]
		tooLarge := func(row schemas.Record) bool { return c.cfg.TooLarge(&row) }
		switch {
		case !found.wanted[id]:
		case found.unpublishable(id), slices.ContainsFunc(rows, tooLarge):
			c.countDeadLetter(id)
			c.Forget(id)
		default:
			c.kept -= s.size()
			underWay[s] = s.update(c.cfg, rows)
			c.kept += s.size()
		}
	}
	c.clear(func(s *suspect) bool { return s.delivered() || underWay[s] })
}

func (c *Comparison) some(which func(*suspect) bool) bool {
	for _, s := range c.suspects {
		if which(s) {
			return true
		}
	}
	return false
}

// fold notes a record of the topic, which may be newer than the known one. A value that another producer
// wrote has no created_at. Then the known created_at stays.
func (c *Comparison) fold(p watermark.Published) error {
	if s := c.suspects[p.ID]; s != nil && !p.Foreign {
		s.fold(p)
	}
	return nil
}

// clear drops the suspects that need no more looking at.
func (c *Comparison) clear(which func(*suspect) bool) {
	for id, s := range c.suspects {
		if which(s) {
			c.report.InFlight++
			c.Forget(id)
		}
	}
}

// suspect returns the suspect id, and makes it if there is room. It returns nil if there is no room.
func (c *Comparison) suspect(id int64, inTopic bool, v rowset.Version, strays []int32) *suspect {
	s := c.suspects[id]
	if s == nil && c.room() {
		v.Marked = false
		s = &suspect{inTopic: inTopic, topic: v, topicBefore: v, created: schemas.MinInstant, since: c.cfg.Now(),
			strays: strays}
		c.suspects[id] = s
		c.kept += s.size()
	}
	return s
}

// room says whether there is any for another suspect.
func (c *Comparison) room() bool {
	return len(c.suspects) < c.cfg.MaxSuspects && (c.kept < int(suspectsShare(c.cfg.Memory)) ||
		len(c.suspects) == 0)
}

// countDeadLetter counts a row once.
func (c *Comparison) countDeadLetter(id int64) {
	if !c.counted[id] {
		if len(c.counted) < c.cfg.MaxSuspects { // beyond, a row that is shown twice counts twice
			c.counted[id] = true
		}
		c.report.DeadLetters++
	}
}

// Suspects is how many rows differ for now, without those that are too many to look at again.
func (c *Comparison) Suspects() int { return len(c.suspects) }

// IDs returns the ids of the suspects, in any order.
func (c *Comparison) IDs() iter.Seq[int64] { return maps.Keys(c.suspects) }

// Forget drops a suspect that the caller has dealt with.
func (c *Comparison) Forget(id int64) {
	if s := c.suspects[id]; s != nil {
		c.kept -= s.size()
		delete(c.suspects, id)
	}
}

// Restart makes the next look restart a suspect's Since, because another read of the source has shown the row
// otherwise than the last look.
func (c *Comparison) Restart(id int64) {
	if s := c.suspects[id]; s != nil {
		s.restarts = true
	}
}

// Differences returns what differs still, by id.
func (c *Comparison) Differences() []Difference {
	var found []Difference
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		found = append(found, c.suspects[id].difference(id))
	}
	return found
}

// Difference returns how the row id differs; false: it does not.
func (c *Comparison) Difference(id int64) (Difference, bool) {
	s := c.suspects[id]
	if s == nil {
		return Difference{}, false
	}
	return s.difference(id), true
}

// Count is how many rows differ, by kind. It includes those that were too many to look at again.
func (c *Comparison) Count() map[Kind]int {
	count := maps.Clone(c.untracked)
	for _, s := range c.suspects {
		count[s.kind()]++
	}
	return count
}

// Report returns the figures so far.
func (c *Comparison) Report() Report {
	r := c.report
	for _, n := range c.untracked {
		r.Untracked += n
	}
	r.UntrackedRows = c.untracked[Missing] + c.untracked[Stale]
	return r
}
