package compare

import (
	"context"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Progress is how far First has come: it reads the topic, then the source.
type Progress struct{ TopicRows, SourceRows int }

// progressEvery is how many records of the topic pass between two reports of progress.
const progressEvery = 10_000

// firstReading is the first reading of both sides in full. What it knows of each row goes when it is over:
// the looks need only the suspects.
type firstReading struct {
	c        *Comparison
	progress func(Progress)
	// topic has the newest record of each id, marked where the source has the row too. absent has the source's
	// other rows.
	topic, absent *rowset.Set
	// strays are the partitions with a record that does not belong there, for at most MaxSuspects rows.
	strays map[int64][]int32
}

func (f *firstReading) read(ctx context.Context) (err error) {
	c := f.c
	n := 0
	c.ends, err = c.cfg.Topic(ctx, nil, func(p watermark.Published) error {
		f.fold(p)
		if n++; n%progressEvery == 0 {
			f.progress(Progress{TopicRows: f.topic.Len()})
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.report.TopicRows = f.topic.Len()
	err = c.cfg.Source(ctx, nil, func(rows []schemas.Record, rejects []schemas.Reject) {
		for i := range rows {
			f.meet(&rows[i])
		}
		for i := range rejects {
			f.meetReject(&rejects[i])
		}
		f.progress(Progress{c.report.TopicRows, c.report.SourceRows})
	})
	if err != nil {
		return err
	}
	return f.suspectUnmet(ctx)
}

func (f *firstReading) fold(p watermark.Published) {
	switch {
	case p.Foreign:
		if !p.Tombstone {
			f.c.report.Foreign++
		}
	case p.Stray:
		f.foldStray(p)
	case p.Tombstone:
		f.topic.Remove(p.ID)
	default:
		f.topic.Put(p.ID, rowset.Version{Millis: p.UpdatedAt.Millis(), Hash: p.Hash})
	}
}

func (f *firstReading) foldStray(p watermark.Published) {
	before := f.strays[p.ID]
	if len(before) == 0 && len(f.strays) >= f.c.cfg.MaxSuspects {
		if !p.Tombstone {
			f.c.untracked[Stale]++
		}
		return
	}
	if now := foldStray(before, p); len(now) > 0 {
		f.strays[p.ID] = now
	} else {
		delete(f.strays, p.ID)
	}
}

// meet takes one row of the source. A source may repeat a row.
func (f *firstReading) meet(row *schemas.Record) {
	c, version := f.c, versionOf(row)
	inTopic, known := f.topic.Get(row.ID)
	if !known && row.UpdatedAt < c.cfg.Start {
		return // the reading includes it by its created_at; by its updated_at the topic does not
	}
	first := f.count(row.ID, inTopic, known)
	switch {
	case known && inTopic.Equal(version.Millis, version.Hash) && len(f.strays[row.ID]) == 0:
	case c.deadLetters[row.ID]:
		c.countDeadLetter(row.ID) // its content is good, but it is too large to publish
	default:
		if s := c.suspect(row.ID, known, inTopic, f.strays[row.ID]); s != nil {
			s.show(c.cfg, row)
		} else if first && known {
			c.untracked[Stale]++
		} else if first {
			c.untracked[Missing]++
		}
	}
}

// count counts a row of the source once.
func (f *firstReading) count(id int64, inTopic rowset.Version, known bool) (first bool) {
	if known {
		first = f.mark(id, inTopic)
	} else if _, again := f.absent.Get(id); !again {
		first = true
		f.absent.Put(id, rowset.Version{})
	}
	if first {
		f.c.report.SourceRows++
	}
	return first
}

// mark notes that the source has id, which is in the topic. It says whether this is new.
func (f *firstReading) mark(id int64, v rowset.Version) (first bool) {
	if first = !v.Marked; first {
		v.Marked = true
		f.topic.Put(id, v)
	}
	return first
}

// meetReject takes a row of the source that cannot be published: a dead letter, whatever the topic still
// holds of it.
func (f *firstReading) meetReject(r *schemas.Reject) {
	if !r.HasID {
		f.c.report.DeadLetters++
		f.c.report.Nameless++
		return
	}
	f.c.countDeadLetter(r.ID)
	if v, known := f.topic.Get(r.ID); known {
		f.mark(r.ID, v)
	}
}

// suspectUnmet makes suspects of the rows that the source did not show, and finds the day on which the source
// would have each. For that it reads the topic once more: keeping the day of every row would take half as
// much memory again, for rows that hardly ever exist.
func (f *firstReading) suspectUnmet(ctx context.Context) error {
	c, found := f.c, false
	suspect := func(id int64, inTopic bool, v rowset.Version) {
		found = true
		if c.suspect(id, inTopic, v, f.strays[id]) == nil {
			c.untracked[Extra]++
		}
	}
	f.topic.Each(func(id int64, v rowset.Version) {
		if !v.Marked && v.Millis >= c.cfg.Start.Millis() {
			suspect(id, true, v)
		}
	})
	for id := range f.strays { // of rows that neither the source has nor their own partition
		if c.suspects[id] == nil {
			suspect(id, false, rowset.Version{Millis: schemas.MinInstant.Millis()})
		}
	}
	if !found {
		return nil
	}
	ends, err := c.cfg.Topic(ctx, nil, c.fold)
	if err == nil {
		c.ends = ends
	}
	return err
}
