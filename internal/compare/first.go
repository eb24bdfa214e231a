package compare

import (
	"context"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Progress is how far First has come: first the topic is read, then the source.
type Progress struct{ TopicRows, SourceRows int }

// progressEvery is how many records of the topic pass between two reports of progress.
const progressEvery = 10_000

// First reads both in full. progress hears how far it is; nil: nobody does.
func (c *Comparison) First(ctx context.Context, progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
	var err error
	if c.letters, err = c.cfg.DeadLetters(ctx); err != nil {
		return err
	}
	if err := c.readTopic(ctx, progress); err != nil {
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
		progress(Progress{c.report.TopicRows, c.report.SourceRows})
	})
	if err != nil {
		return err
	}
	if err := c.unmet(ctx); err != nil {
		return err
	}
	c.topic, c.absent, c.strays = nil, nil, nil // the looks need the suspects alone
	return nil
}

func (c *Comparison) readTopic(ctx context.Context, progress func(Progress)) (err error) {
	n := 0
	c.ends, err = c.cfg.Topic(ctx, nil, func(p watermark.Published) error {
		switch {
		case p.Foreign:
			if !p.Tombstone {
				c.report.Foreign++
			}
		case p.Stray:
			c.noteStray(p)
		case p.Tombstone:
			c.topic.Remove(p.ID)
		default:
			c.topic.Put(p.ID, rowset.Version{Millis: p.UpdatedAt.Millis(), Hash: p.Hash})
		}
		if n++; n%progressEvery == 0 {
			progress(Progress{TopicRows: c.topic.Len()})
		}
		return nil
	})
	return err
}

func (c *Comparison) noteStray(p watermark.Published) {
	before := c.strays[p.ID]
	if len(before) == 0 && len(c.strays) >= c.cfg.MaxSuspects {
		if !p.Tombstone {
			c.untracked[Stale]++
		}
		return
	}
	if now := stray(before, p); len(now) > 0 {
		c.strays[p.ID] = now
	} else {
		delete(c.strays, p.ID)
	}
}

// met takes one row of the source's full reading. A source may repeat a row.
func (c *Comparison) met(row *schemas.Record) {
	version := versionOf(row)
	inTopic, known := c.topic.Get(row.ID)
	if !known && row.UpdatedAt < c.cfg.Start {
		return // by its created_at in the reading, and by its updated_at not in the topic
	}
	first := c.count(row.ID, inTopic, known)
	switch {
	case known && inTopic.Equal(version.Millis, version.Hash) && len(c.strays[row.ID]) == 0:
	case c.letters[row.ID]:
		c.letter(row.ID) // good by its content, but not to be published: too large
	default:
		if s := c.suspect(row.ID, known, inTopic); s != nil {
			s.show(c.cfg, row)
		} else if first && known {
			c.untracked[Stale]++
		} else if first {
			c.untracked[Missing]++
		}
	}
}

// count counts a row of the source, once.
func (c *Comparison) count(id int64, inTopic rowset.Version, known bool) (first bool) {
	if known {
		first = !inTopic.Marked
		c.mark(id, inTopic)
	} else if _, again := c.absent.Get(id); !again {
		first = true
		c.absent.Put(id, rowset.Version{})
	}
	if first {
		c.report.SourceRows++
	}
	return first
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
		c.report.Nameless++
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

// unmet makes suspects of what the source did not have, and finds out on which day the service would look for them. That takes the topic once more: to keep
// the day of each row would have cost everybody half as much memory again, for rows that are hardly ever there.
func (c *Comparison) unmet(ctx context.Context) error {
	found := false
	c.topic.Each(func(id int64, v rowset.Version) {
		if v.Marked || v.Millis < c.cfg.Start.Millis() {
			return
		}
		found = true
		if c.suspect(id, true, v) == nil {
			c.untracked[Extra]++
		}
	})
	for id := range c.strays { // of rows that neither the source has nor the topic in their own partition
		if c.suspects[id] != nil {
			continue
		}
		found = true
		if c.suspect(id, false, rowset.Version{Millis: schemas.MinInstant.Millis()}) == nil {
			c.untracked[Extra]++
		}
	}
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
