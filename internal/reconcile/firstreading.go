package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// progressEvery is how many records of the topic pass between two reports of progress.
const progressEvery = 10_000

// sighting is a version of a row that the source shows.
type sighting struct {
	id      int64
	version rowset.Version // of one that cannot be published, its hash is that of a dead letter
	updated schemas.Instant
	bad     bool // it cannot be published
	large   bool // it does not fit into a record of the topic
	// row or reject is it, or both are nil. Then size is how many bytes it has at most, and created its day.
	row     *schemas.Record
	reject  *schemas.Reject
	size    int
	created schemas.Instant
}

func sightingOf(row *schemas.Record) *sighting {
	return &sighting{id: row.ID, version: versionOfRow(row), updated: row.UpdatedAt, row: row}
}

func sightingOfReject(r *schemas.Reject) *sighting {
	return &sighting{id: r.ID, version: versionOfReject(r), updated: r.UpdatedAt, bad: true, reject: r}
}

// rowMemory is how many bytes the rows of a part may take, with what Scratch has in memory. The suspects take
// an eighth of all, at least 1 MiB. Readers of both sides take the rest.
func (c *Comparison) rowMemory() int { return int(c.cfg.Memory / 16 * 11) }

// readPart is First for a part.
func (c *Comparison) readPart(ctx context.Context, progress func(topicRows, sourceRows int)) (err error) {
	scratch := c.cfg.Scratch
	if c.part.Last, err = scratch.read(ctx, c, progress); err != nil {
		scratch.Close()
		return err
	}
	c.ends = scratch.ends
	defer func() { scratch.release(c.part.Last) }()
	memory := c.rowMemory()
	if scratch.Err() != nil {
		memory /= 2 // the notes have the other half
	}
	c.rows = rowset.NewTable(memory / rowset.TableRowBytes)
	defer c.rows.Close()
	if err := scratch.eachRecord(c.part, c.foldIntoTable); err != nil && !errors.Is(err, errPartFull) {
		return err
	}
	for id, s := range c.suspects { // they have strays
		s.topic, s.inTopic = c.inTopic(id)
		s.topicBefore = s.topic
	}
	if c.cfg.ByID {
		topicRows := c.rows.Len()
		err = c.readSource(ctx, c.part, func(read int) { progress(topicRows, read) }, c.meet)
	} else {
		err = scratch.eachShown(c.part, c.meet)
	}
	if err != nil {
		return err
	}
	c.suspectUnmet()
	if c.cfg.ByID || len(c.suspects) == 0 {
		return nil
	}
	return scratch.eachRecord(c.part, c.fold) // they say when a suspect was created
}

// readSource reads the rows of the source with these ids. A source that is read by id may stop behind them.
func (c *Comparison) readSource(ctx context.Context, ids Range, progress func(read int),
	take func(*sighting) error) error {
	read := 0
	var shown sighting // take does not keep it, but the compiler cannot know
	for a, err := range c.cfg.Source(ctx, ids, nil) {
		c.report.Shown = c.report.Shown || len(a.Rows) > 0
		beyond := false
		for i := 0; i < len(a.Rows) && err == nil; i++ {
			shown = *sightingOf(&a.Rows[i])
			err = take(&shown)
			beyond = beyond || a.Rows[i].ID > c.part.Last
		}
		for i := 0; i < len(a.Rejects) && err == nil; i++ {
			if r := &a.Rejects[i]; r.HasID {
				err = take(sightingOfReject(r))
			} else if c.report.Nameless++; len(c.nameless) < mostNameless {
				c.nameless = append(c.nameless, *r)
			}
		}
		if err != nil || c.cfg.ByID && beyond { // the rest lies behind the part
			return err
		}
		read += len(a.Rows) + len(a.Rejects)
		progress(read)
	}
	return nil
}

// errPartFull says that a part has as many rows as it may.
var errPartFull = errors.New("the part ends here")

// foldIntoTable notes a record of the topic. The records of rows come by id. The part ends before one that
// has no room.
func (c *Comparison) foldIntoTable(p watermark.Published) error {
	switch {
	case p.Foreign: // each part meets them
		if c.part.First == everyID.First && p.Unread {
			c.report.Unread++
		} else if c.part.First == everyID.First && !p.Tombstone {
			c.report.Foreign++
		}
	case !c.part.Holds(p.ID):
	case p.Stray:
		s := c.suspect(p.ID)
		s.fold(p)
		if c.count(s); len(s.strays) == 0 {
			c.Forget(p.ID)
		}
		c.makeRoom()
	case p.Tombstone:
		c.rows.Remove(p.ID)
	case !c.rows.Put(p.ID, rowset.VersionOf(p.UpdatedAt, p.Hash)):
		c.part.Last = p.ID - 1
		c.Forget(p.ID) // it may have a stray
		return errPartFull
	}
	return nil
}

// makeRoom lets the part end earlier if more rows differ than one part takes in.
func (c *Comparison) makeRoom() {
	for {
		n := len(c.suspects) + len(c.letters)
		if n < 2 || n <= c.cfg.MaxSuspects && c.kept <= int(max(c.cfg.Memory/8, 1<<20)) {
			return
		}
		ids := slices.AppendSeq(slices.Collect(maps.Keys(c.suspects)), maps.Keys(c.letters))
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) < 2 {
			return
		}
		c.endEarlier(ids)
		c.crowded = true
	}
}

// endEarlier lets the part end below the highest eighth of these ids, of which there are two or more, or
// where it ends already.
func (c *Comparison) endEarlier(ids []int64) {
	slices.Sort(ids)
	c.part.Last = min(c.part.Last, ids[max(1, len(ids)*7/8)]-1)
	for id := range c.suspects {
		if id > c.part.Last {
			c.Forget(id)
		}
	}
	maps.DeleteFunc(c.letters, func(id int64, _ bool) bool { return id > c.part.Last })
}

// inTopic returns the version of row id in the topic, as far as First has read it. false: the topic has none.
func (c *Comparison) inTopic(id int64) (v rowset.Version, there bool) {
	v, there = c.rows.Get(id)
	v.Marked = false
	return v, there
}

// meet takes one row of the source. A source may repeat a row. One that cannot be published counts as a dead
// letter even if the topic still holds an older version.
func (c *Comparison) meet(shown *sighting) error {
	id := shown.id
	v, inTopic := c.rows.Get(id)
	if !c.part.Holds(id) || !inTopic && !shown.bad && shown.version.Millis < c.cfg.Start.Millis() {
		return nil // the reading includes it by its created_at; by its updated_at the topic does not
	}
	if inTopic && !v.Marked {
		c.rows.Mark()
	}
	differs := c.suspects[id]
	_, letter := c.cfg.Letters[id]
	equal := inTopic && !shown.bad && v.Equal(shown.version.Millis, shown.version.Hash)
	switch {
	case shown.bad:
		c.letters[id] = true
		if !c.hasLetter(id, shown.version.Hash) {
			c.showSuspect(shown)
		}
	case equal && !letter && (differs == nil || len(differs.strays) == 0):
		return nil // also the topic's version beside another one: the looks find out which is the row
	case !equal && (shown.large || shown.row != nil && c.tooLarge(shown.row)):
		c.letters[id] = true
	default:
		c.showSuspect(shown)
	}
	c.makeRoom()
	return nil
}

func (c *Comparison) showSuspect(shown *sighting) {
	s := c.suspect(shown.id)
	s.show(shown)
	c.count(s)
}

// suspectUnmet makes suspects of the rows that the source did not show: those of the topic and those with a
// dead letter. It counts the part's rows.
func (c *Comparison) suspectUnmet() {
	for id, v := range c.rows.All() {
		if c.part.Holds(id) && !v.Marked && v.Millis >= c.cfg.Start.Millis() {
			c.suspect(id)
			c.makeRoom()
		}
	}
	for id := range c.cfg.Letters {
		if c.part.Holds(id) && !c.letters[id] {
			c.suspect(id)
			c.makeRoom()
		}
	}
	for id, v := range c.rows.All() {
		switch {
		case !c.part.Holds(id):
			continue
		case v.Marked && !c.letters[id]:
			c.report.SourceRows++
		case !v.Marked && v.Millis < c.cfg.Start.Millis():
			c.report.Early++
		}
		c.report.TopicRows++
	}
	for id, s := range c.suspects {
		if s.isRow() && !s.inTopic && !c.letters[id] {
			c.report.SourceRows++
		}
	}
}
