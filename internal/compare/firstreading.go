package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Progress is how far First has come: it reads the topic, then the source. Both count the rows of the part,
// the Part-th of about Parts.
type Progress struct{ Part, Parts, TopicRows, SourceRows int }

// progressEvery is how many records of the topic pass between two reports of progress.
const progressEvery = 10_000

// firstReading is the first reading of one part of both sides. It forgets its rows when it is over, because
// the looks need only the suspects.
type firstReading struct {
	c        *Comparison
	progress func(Progress)
	part     Range // its end comes down when rows is full
	// rows are the topic's rows, marked once the source has shown them. If the source is not read by id, its
	// other rows are there too, as notInTopic.
	rows *rowset.Set
	// strays are the partitions with a record that does not belong there, for at most MaxSuspects rows.
	strays map[int64][]int32

	records, folded int64 // of the topic: about how many there are, and how many of the part were read
	sourceRows      int
	highest         int64 // the highest id that the source has shown
	shown           bool  // it showed one
}

// notInTopic stands for a row of the source that the topic has not. No row has its time.
var notInTopic = rowset.Version{Millis: schemas.MaxInstant.Millis() + 1, Marked: true}

// errCut ends the reading of the source when a part ends early.
var errCut = errors.New("enough differs for a part")

func (f *firstReading) read(ctx context.Context) error {
	c := f.c
	wanted := func(id int64) bool { return f.part.Holds(id) }
	ends, err := c.cfg.Topic(ctx, nil, wanted, f.fold)
	if err != nil {
		return err
	}
	if c.ends == nil {
		c.ends = ends // the suspects of an earlier part know the topic up to an earlier end
	}
	topicRows := f.rows.Len()
	err = c.cfg.Source(ctx, f.part, nil, func(rows []schemas.Record, rejects []schemas.Reject) error {
		var err error
		for i := 0; i < len(rows) && err == nil; i++ {
			err = f.meet(&rows[i])
		}
		for i := range rejects { // also if the part was cut: some rejects lie below
			f.meetReject(&rejects[i])
		}
		f.report(topicRows)
		return err
	})
	switch {
	case errors.Is(err, errCut):
		topicRows = f.rows.Len()
	case err != nil:
		return err
	}
	c.report.TopicRows += topicRows
	c.report.SourceRows += f.sourceRows
	f.suspectUnmet()
	return nil
}

func (f *firstReading) report(topicRows int) {
	plan := NewPlan(f.records, f.c.cfg.Memory, f.c.cfg.ByID)
	f.progress(Progress{f.c.parts, max(f.c.parts, int(plan.Parts)), topicRows, f.sourceRows})
}

func (f *firstReading) fold(p watermark.Published) error {
	if f.folded++; f.folded%progressEvery == 0 {
		f.report(f.rows.Len())
	}
	switch {
	case p.Unread:
		if f.part.First == everyID.First {
			f.c.report.Unread++
		}
	case p.Foreign:
		if !p.Tombstone && f.part.First == everyID.First { // each part meets them
			f.c.report.Foreign++
		}
	case !f.part.Holds(p.ID):
	case p.Stray:
		f.foldStray(p)
	case p.Tombstone:
		f.rows.Remove(p.ID)
	default:
		return f.put(p.ID, rowset.VersionOf(p.UpdatedAt, p.Hash))
	}
	return nil
}

// put notes a row. If there is no room and the source is read by id, it makes room.
func (f *firstReading) put(id int64, v rowset.Version) error {
	for !f.rows.Put(id, v) {
		held := int64(f.rows.Len())
		if !f.c.cfg.ByID || held < 2 {
			rows := max(held+1, int64(float64(held)*float64(f.records)/float64(max(f.folded, 1))))
			return fmt.Errorf("there are about %d rows to compare, and this source cannot be read in parts: that "+
				"takes about %d MiB of memory, and sweep.memory is %d MiB; raise it",
				rows, needs(rows)>>20+1, f.c.cfg.Memory>>20)
		}
		if f.endBefore(f.nearLast()); id > f.part.Last {
			return nil
		}
	}
	return nil
}

// nearLast returns an id that is above about seven eighths of the ids, and above at least one.
func (f *firstReading) nearLast() int64 {
	const enough = 1024
	ids := f.rows.Sample(enough)
	slices.Sort(ids)
	return ids[max(1, len(ids)*7/8)]
}

// endBefore lets the part end before id.
func (f *firstReading) endBefore(id int64) {
	f.part.Last = id - 1
	f.rows.RemoveFrom(id)
	for stray := range f.strays {
		if stray >= id {
			delete(f.strays, stray)
		}
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
func (f *firstReading) meet(row *schemas.Record) error {
	c, id := f.c, row.ID
	if !f.part.Holds(id) {
		return nil
	}
	inTopic, held := f.rows.Get(id)
	known := held && inTopic.Millis != notInTopic.Millis
	if !known && row.UpdatedAt < c.cfg.Start {
		return nil // the reading includes it by its created_at; by its updated_at the topic does not
	}
	equal := known && inTopic.Equal(row.UpdatedAt.Millis(), schemas.Hash(row.Value)) && len(f.strays[id]) == 0
	letter := !equal && c.cfg.TooLarge(row)
	if !equal && !letter && c.cfg.Cut && c.cfg.ByID && id > f.part.First && c.suspects[id] == nil && !c.room() {
		f.endBefore(id)
		return errCut
	}
	first, err := f.count(id, inTopic, held)
	switch {
	case err != nil:
		return err
	case equal:
	case letter:
		c.countDeadLetter(id)
	default:
		if s := c.suspect(id, known, inTopic, f.strays[id]); s != nil {
			c.kept -= s.size()
			s.show(c.cfg, row)
			c.kept += s.size()
		} else if first && known {
			c.untracked[Stale]++
		} else if first {
			c.untracked[Missing]++
		}
	}
	return nil
}

// count counts a row of the source once. It reports whether this is the first time. A source that is read by
// id shows ids in order, so a row that it repeats is not above the one before. Otherwise rows has to hold it.
func (f *firstReading) count(id int64, v rowset.Version, held bool) (first bool, err error) {
	switch {
	case held:
		if first = !v.Marked; first {
			v.Marked = true
			f.rows.Put(id, v)
		}
	case f.c.cfg.ByID:
		first = !f.shown || id > f.highest
	default:
		first, err = true, f.put(id, notInTopic)
	}
	if !f.shown || id > f.highest {
		f.highest, f.shown = id, true
	}
	if first {
		f.sourceRows++
	}
	return first, err
}

// meetReject notes a row of the source that cannot be published. It counts as a dead letter even if the topic
// still holds an older version.
func (f *firstReading) meetReject(r *schemas.Reject) {
	if !r.HasID {
		f.c.report.DeadLetters++
		f.c.report.Nameless++
		return
	}
	if !f.part.Holds(r.ID) {
		return
	}
	f.c.countDeadLetter(r.ID)
	if v, held := f.rows.Get(r.ID); held {
		v.Marked = true
		f.rows.Put(r.ID, v)
	}
}

// suspectUnmet makes suspects of the rows that the source did not show.
func (f *firstReading) suspectUnmet() {
	c := f.c
	suspect := func(id int64, inTopic bool, v rowset.Version) {
		if c.suspect(id, inTopic, v, f.strays[id]) == nil {
			c.untracked[Extra]++
		}
	}
	f.rows.Each(func(id int64, v rowset.Version) {
		switch {
		case v.Marked:
		case v.Millis < c.cfg.Start.Millis():
			c.report.Early++
		default:
			suspect(id, true, v)
		}
	})
	for id := range f.strays { // of rows that neither the source has nor their own partition
		if c.suspects[id] == nil {
			suspect(id, false, rowset.Version{})
		}
	}
}
