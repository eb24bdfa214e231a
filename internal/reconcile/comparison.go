package reconcile

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Comparison compares one part of a resource, or named rows of it, once. It is for one goroutine at a time.
// Only See may be called beside it.
type Comparison struct {
	cfg  Config
	last int64 // the part's last id
	// notes are of both sides, and of the ids behind the part too. The topic was read to notesEnd for them, and
	// to ends for every suspect.
	notes    *rowset.Sorter
	notesEnd []int64
	ends     []int64
	// later, of a replay, are the rows behind the part that have a record between notesEnd and ends. With them
	// the next part goes on at ends. Otherwise it would read the records of the parts before it again. It is nil
	// if these rows are too many.
	later map[int64]bool
	// before is an overlap before the source was read for the notes.
	before   schemas.Instant
	suspects map[int64]*suspect
	kept     int // bytes of the suspects
	// letters are the part's rows that cannot be published.
	letters map[int64]bool
	// nameless are the first rows of the source without a usable id that First met.
	nameless []schemas.Reject
	// everywhere is set once a full reading has looked for every suspect.
	everywhere bool
	report     Report

	mu       sync.Mutex // guards the fields that See changes while another goroutine is in a look
	watching bool       // First is over, so See counts
}

// Report is the figures of a comparison. In JSON it has those that `verify -o json` prints.
type Report struct {
	// SourceRows and TopicRows are the numbers of compared rows.
	SourceRows int `json:"source_rows"`
	TopicRows  int `json:"topic_rows"`
	// DeadLetters is the number of rows that cannot be published. They are not among SourceRows.
	DeadLetters int `json:"dead_letters"`
	// Nameless is the number of those that have no usable id, so they match no row of the topic.
	Nameless int `json:"-"`
	// InFlight is the number of rows that differed at first and not later.
	InFlight int `json:"in_flight"`
	// Foreign is the number of records whose key is no row's. They are no difference, but consumers meet them.
	Foreign int `json:"foreign"`
	// Unread counts batches of another program that could not be read. They may hold any row's key.
	Unread int `json:"-"`
	// Early rows of the topic are from before Start, and the source did not show them. They were not compared.
	Early int `json:"-"`
	// Wanted is how many records of the topic the first reading of a replay met that may have to be published
	// again. A row may have several.
	Wanted int `json:"-"`
	// Absent is how many of the named rows of a replay the topic does not have.
	Absent int `json:"-"`
	// Shown is set if the first reading met a row that can be published, also one behind the part.
	Shown bool `json:"-"`
	// Empty is set if a look found the source without any row. That is likelier an outage than true.
	Empty bool `json:"-"`
}

// mostNameless limits the rows without a usable id that are kept.
const mostNameless = 1000

// New prepares a comparison.
func New(cfg Config) *Comparison {
	cfg.MaxSuspects = cmp.Or(cfg.MaxSuspects, 100_000)
	cfg.Memory = cmp.Or(cfg.Memory, 128<<20)
	cfg.MaxValueBytes = cmp.Or(cfg.MaxValueBytes, math.MaxInt)
	c := &Comparison{cfg: cfg, last: math.MaxInt64, letters: map[int64]bool{},
		suspects: map[int64]*suspect{}, notes: &rowset.Sorter{}}
	if cfg.Again != nil {
		c.later = map[int64]bool{}
	}
	if b := cfg.Before; b != nil {
		if b.later != nil && b.last < cfg.From {
			c.later, c.ends = b.later, b.ends
		}
		c.notes, c.notesEnd, c.before, c.nameless, c.cfg.Before = b.notes, b.notesEnd, b.before, b.nameless, nil
		c.report.Nameless, c.report.Shown, c.report.Wanted = b.report.Nameless, b.report.Shown, b.report.Wanted
	}
	return c
}

// Next returns the comparison of the part behind this one. Its report has the figures of both.
func (c *Comparison) Next() *Comparison {
	cfg := c.cfg
	cfg.From, cfg.Before = c.last+1, c
	next := New(cfg)
	next.report = c.Report()
	return next
}

// First reads both sides once. It calls progress now and then, with the rows of the topic and of the source
// so far, maybe from two goroutines at a time. Named rows are all suspects, and only the topic is read for
// them. After an error the comparison is of no use.
func (c *Comparison) First(ctx context.Context, progress func(topicRows, sourceRows int)) (err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watching = true
	}()
	if c.cfg.IDs == nil {
		c.everywhere = true
		return c.readPart(ctx, progress)
	}
	c.everywhere = c.cfg.ByID || c.cfg.Again != nil
	for _, id := range c.cfg.IDs {
		s := c.newSuspect(id)
		c.suspects[id] = &s
		c.count(&s)
	}
	wanted := func(id int64) bool { return c.suspects[id] != nil }
	c.ends, err = c.topic(ctx, nil, wanted, c.fold)
	return err
}

// Part returns the first and the last id that First compared. The last is below the highest id if no more
// rows that differ had room.
func (c *Comparison) Part() (first, last int64) { return c.cfg.From, c.last }

// Partitions is the number of the topic's partitions when it was last read.
func (c *Comparison) Partitions() int { return len(c.ends) }

// Look looks at the suspects again: in the topic, then those that still differ in the source.
//
// The topic comes first because the pipeline has then had all the time since the last look to deliver the
// versions that the source showed there. The versions that the source shows now need no delivery yet. In the
// other order, a row that changes all the time might be published between the two readings, again and again,
// in versions that no look has met.
//
// If a full reading has not looked for the suspects yet, and the source is read by day, Look makes one for
// those that it does not find: the lookup reads all rows by one dimension, and a full reading by the other.
//
// A look that fails leaves the suspects as they were. It may be tried again.
func (c *Comparison) Look(ctx context.Context) error {
	if err := c.CatchUp(ctx); err != nil || len(c.suspects) == 0 {
		return err
	}
	var rows []Suspect
	looked, nameless := make(map[int64]*suspect, len(c.suspects)), map[uint64]bool{}
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		s := c.suspects[id]
		rows = append(rows, s.toLookUp(id, c.cfg))
		looked[id] = &suspect{shown: notShown, updated: schemas.MinInstant, versions: slices.Clip(s.versions)}
	}
	from := c.cfg.Now()
	empty, err := c.readAgain(ctx, rows, looked, nameless)
	absent := func(r Suspect) bool { return looked[r.ID].shown == notShown }
	if err == nil && !c.everywhere && slices.ContainsFunc(rows, absent) {
		var none bool
		none, err = c.readAgain(ctx, nil, looked, nameless)
		c.everywhere, empty = err == nil, empty || none
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.report.Empty = c.report.Empty || empty
	c.report.Nameless = max(c.report.Nameless, len(nameless))
	for id, s := range c.suspects {
		s.update(looked[id], from, c.cfg.Now())
		c.count(s)
		large := s.row != nil && c.tooLarge(s.row)
		if c.letters[id] = large || s.reject != nil; !c.letters[id] {
			delete(c.letters, id)
		} else if !s.named && !s.again && (large || c.hasLetter(id, watermark.DeadLetterHash(s.reject.Row))) {
			c.Forget(id)
		}
	}
	c.mu.Unlock()
	c.clear()
	return nil
}

// readAgain reads the suspects in the source, or every row if rows is nil. It notes in looked the states that
// the source shows, and adds the hashes of rows without a usable id to nameless.
func (c *Comparison) readAgain(ctx context.Context, rows []Suspect, looked map[int64]*suspect,
	nameless map[uint64]bool) (empty bool, err error) {
	for a, err := range c.cfg.Source(ctx, rows) {
		if err != nil {
			return false, err
		}
		empty = empty || a.Empty
		for i := range a.Rows {
			if s := looked[a.Rows[i].ID]; s != nil {
				s.showRow(&a.Rows[i])
			}
		}
		for i := range a.Rejects {
			r := &a.Rejects[i]
			if s := looked[r.ID]; !r.HasID {
				nameless[watermark.DeadLetterHash(r.Row)] = true
			} else if s != nil {
				s.showReject(r)
			}
		}
	}
	return empty, nil
}

// tooLarge reports whether a row is good and does not fit into a record of the topic.
func (c *Comparison) tooLarge(row *schemas.Record) bool {
	return len(row.Value) > c.cfg.MaxValueBytes
}

// hasLetter reports whether a row that cannot be published has its dead letter, which has this hash.
func (c *Comparison) hasLetter(id int64, hash uint64) bool {
	letter, has := c.cfg.Letters[id]
	return c.cfg.Letters == nil || has && rowset.Version{Hash: hash}.Equal(0, letter)
}

// CatchUp reads the topic on, and clears the suspects that the pipeline has delivered.
func (c *Comparison) CatchUp(ctx context.Context) error {
	if len(c.suspects) == 0 {
		return nil
	}
	wanted := func(id int64) bool { return c.suspects[id] != nil || c.cfg.Again != nil && id > c.last }
	ends, err := c.topic(ctx, c.ends, wanted, c.fold)
	if err != nil {
		return err
	}
	c.ends = ends
	c.clear()
	return nil
}

// topic reads the topic, as the comparison takes it.
func (c *Comparison) topic(ctx context.Context, from []int64, wanted func(id int64) bool,
	fold func(watermark.Published) error) (ends []int64, err error) {
	if c.cfg.Again != nil {
		return c.cfg.Again.only(c.cfg.Topic)(ctx, from, wanted, fold)
	}
	return c.cfg.Topic(ctx, from, wanted, fold)
}

// fold notes a record of the topic, which may be newer than the known one. For named rows the topic is read
// once, so each batch that could not be read counts once.
func (c *Comparison) fold(p watermark.Published) error {
	if p.Unread && c.cfg.IDs != nil {
		c.report.Unread++
	}
	if s := c.suspects[p.ID]; s != nil && !p.Foreign {
		s.fold(p)
	} else if c.later != nil && p.ID > c.last {
		if c.later[p.ID] = true; len(c.later) > c.cfg.MaxSuspects {
			c.later = nil
		}
	}
	return nil
}

// clear drops the suspects that no longer differ.
func (c *Comparison) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.suspects {
		if s.delivered() {
			c.report.InFlight++
			if s.again && s.named && !c.cfg.Again.did(s.newest) {
				c.report.Absent++
			}
			c.Forget(id)
		}
	}
}

// newSuspect returns a suspect that no read has shown.
func (c *Comparison) newSuspect(id int64) suspect {
	_, letter := c.cfg.Letters[id]
	return suspect{shown: notShown, updated: schemas.MinInstant, created: schemas.MinInstant, letter: letter,
		named: c.cfg.IDs != nil, again: c.cfg.Again != nil}
}

// count counts the bytes of a suspect that is new or has changed.
func (c *Comparison) count(s *suspect) {
	n := s.size()
	c.kept, s.counted = c.kept+n-s.counted, n
}

// See notes the states of suspects that another read of the source has shown. The time when that read began
// is not known. So it can restart a confirmation and cannot complete one: it may have gone to the same
// lagging copy at the same moment as the last look. Any row without a usable id may be a row that the topic
// has.
//
// Before First is over, See notes nothing, because First confirms nothing.
func (c *Comparison) See(rows []schemas.Record, rejects []schemas.Reject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watching || len(c.suspects) == 0 {
		return
	}
	at := c.cfg.Now()
	for i := range rows {
		if s := c.suspects[rows[i].ID]; s != nil {
			s.see(versionOfRow(&rows[i]), at)
		}
	}
	for i := range rejects {
		if s := c.suspects[rejects[i].ID]; !rejects[i].HasID {
			c.report.Nameless = max(c.report.Nameless, 1)
		} else if s != nil {
			s.see(rejected, at)
		}
	}
}

// Due returns when another look may confirm the differences that do not count yet. false: there are none.
func (c *Comparison) Due() (at time.Time, waits bool) {
	for _, s := range c.suspects {
		if due := s.confirmation.Due(c.cfg.Overlap); !s.counts(c.cfg) && due.After(at) {
			at, waits = due, true
		}
	}
	return at, waits
}

// Suspects is the number of rows that may differ.
func (c *Comparison) Suspects() int { return len(c.suspects) }

// Nameless returns the rows without a usable id that First met, the first 1,000 of them.
func (c *Comparison) Nameless() []schemas.Reject { return c.nameless }

// Forget drops a suspect that the caller has dealt with.
func (c *Comparison) Forget(id int64) {
	if s := c.suspects[id]; s != nil {
		c.kept -= s.counted
		delete(c.suspects, id)
	}
}

// Differences returns the differences, by id.
func (c *Comparison) Differences() []Difference {
	var found []Difference
	for _, id := range slices.Sorted(maps.Keys(c.suspects)) {
		found = append(found, c.suspects[id].difference(id, c.cfg))
	}
	return found
}

// Report returns the figures so far.
func (c *Comparison) Report() Report {
	r := c.report
	r.DeadLetters += len(c.letters)
	if c.cfg.From == math.MinInt64 { // each part meets them
		r.DeadLetters += r.Nameless
	}
	return r
}
