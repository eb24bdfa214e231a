package reconcile

import (
	"context"
	"maps"
	"slices"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// progressEvery is how many records of the topic pass between two reports of progress.
const progressEvery = 10_000

// readPart is First for a part.
func (c *Comparison) readPart(ctx context.Context, progress func(topicRows, sourceRows int)) error {
	// A part's rows take eleven sixteenths of the memory. The suspects take an eighth, at least 1 MiB. Readers
	// of both sides take the rest.
	c.rows = rowset.New(int(c.cfg.Memory / 16 * 11))
	defer c.rows.Close()
	folded, wanted := 0, func(id int64) bool { return c.part.Holds(id) }
	ends, err := c.cfg.Topic(ctx, nil, wanted, func(p watermark.Published) error {
		if folded++; folded%progressEvery == 0 {
			progress(c.rows.Len(), 0)
		}
		c.foldIntoTable(p)
		return nil
	})
	if err != nil {
		return err
	}
	c.ends = ends
	before := schemas.InstantOf(c.cfg.Now().Add(-c.cfg.Overlap))
	for id, s := range c.suspects { // they have strays
		s.topic, s.inTopic = c.inTopic(id)
		s.topicBefore = s.topic
	}
	read, topicRows := 0, c.rows.Len()
	for a, err := range c.cfg.Source(ctx, c.part, nil) {
		if err != nil {
			return err
		}
		beyond := false
		c.report.Shown = c.report.Shown || len(a.Rows) > 0
		for i := range a.Rows {
			c.meet(&a.Rows[i])
			beyond = beyond || a.Rows[i].ID > c.part.Last
		}
		for i := range a.Rejects {
			c.meetReject(&a.Rejects[i])
		}
		if read += len(a.Rows) + len(a.Rejects); c.cfg.ByID && beyond {
			break // the rest lies behind the part
		}
		progress(topicRows, read)
	}
	c.suspectUnmet(before)
	return nil
}

func (c *Comparison) foldIntoTable(p watermark.Published) {
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
	default: // if there is no room, the part ends earlier, maybe before this row
		for c.part.Holds(p.ID) && !c.rows.Put(p.ID, rowset.VersionOf(p.UpdatedAt, p.Hash)) {
			var sample []int64
			for id := range c.rows.All() {
				if sample = append(sample, id); len(sample) == 1024 {
					break
				}
			}
			c.endEarlier(sample)
			c.rows.RemoveFrom(c.part.Last + 1)
		}
	}
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

// meet takes one row of the source. A source may repeat a row.
func (c *Comparison) meet(row *schemas.Record) {
	id := row.ID
	v, inTopic := c.rows.Get(id)
	if !c.part.Holds(id) || !inTopic && row.UpdatedAt < c.cfg.Start {
		return // the reading includes it by its created_at; by its updated_at the topic does not
	}
	if inTopic && !v.Marked {
		v.Marked = true
		c.rows.Put(id, v)
	}
	equal := inTopic && v.Equal(row.UpdatedAt.Millis(), schemas.Hash(row.Value))
	_, letter := c.cfg.Letters[id]
	differs := c.suspects[id]
	switch {
	case equal && !letter && (differs == nil || len(differs.strays) == 0):
		return // also the topic's version beside another one: the looks find out which is the row
	case !equal && c.tooLarge(row):
		c.letters[id] = true
	default:
		s := c.suspect(id)
		s.show(row)
		c.count(s)
	}
	c.makeRoom()
}

// meetReject takes a row of the source that cannot be published. It counts as a dead letter even if the topic
// still holds an older version.
func (c *Comparison) meetReject(r *schemas.Reject) {
	if !r.HasID {
		if c.report.Nameless++; len(c.nameless) < mostNameless {
			c.nameless = append(c.nameless, *r)
		}
		return
	}
	if !c.part.Holds(r.ID) {
		return
	}
	c.letters[r.ID] = true
	if v, held := c.rows.Get(r.ID); held {
		v.Marked = true
		c.rows.Put(r.ID, v)
	}
	if !c.hasLetter(r) {
		s := c.suspect(r.ID)
		s.showReject(r)
		c.count(s)
	}
	c.makeRoom()
}

// suspectUnmet makes suspects of the rows that the source did not show: those of the topic and those with a
// dead letter. It counts the part's rows.
//
// Every copy of the source has the topic's rows from before the last overlap. If a look shows one of them
// unchanged, the first reading was not shown all rows, and then a row that the topic lacks may be among them.
func (c *Comparison) suspectUnmet(before schemas.Instant) {
	for id, v := range c.rows.All() {
		if c.part.Holds(id) && !v.Marked && v.Millis >= c.cfg.Start.Millis() {
			if s := c.suspect(id); v.Millis < before.Millis() {
				s.unmet = s.topic
			}
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
		if s.row != nil && !s.inTopic && !c.letters[id] {
			c.report.SourceRows++
		}
	}
}
