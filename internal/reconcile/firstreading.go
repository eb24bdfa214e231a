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

// firstReading is the first reading of a part of both sides. It leaves the suspects, the part's end, and the
// figures in its comparison, and forgets the other rows.
type firstReading struct {
	*Comparison
	// rows are the topic's rows and the source's other rows, those as notShown. A row is marked once the source
	// has shown it.
	rows *rowset.Set
	// strays are the partitions with a record that does not belong there.
	strays map[int64][]int32
}

func (c *Comparison) readPart(ctx context.Context, progress func(topicRows, sourceRows int)) error {
	// A part's rows take eleven sixteenths of the memory. The suspects take an eighth, at least 1 MiB. Readers
	// of both sides take the rest.
	f := firstReading{c, rowset.New(int(c.cfg.Memory / 16 * 11)), map[int64][]int32{}}
	defer f.rows.Close()
	folded, wanted := 0, func(id int64) bool { return c.part.Holds(id) }
	ends, err := c.cfg.Topic(ctx, nil, wanted, func(p watermark.Published) error {
		if folded++; folded%progressEvery == 0 {
			progress(f.rows.Len(), 0)
		}
		f.foldIntoTable(p)
		return nil
	})
	if err != nil {
		return err
	}
	c.ends = ends
	read, topicRows := 0, f.rows.Len()
	for a, err := range c.cfg.Source(ctx, c.part, nil) {
		if err != nil {
			return err
		}
		beyond := false
		f.report.Shown = f.report.Shown || len(a.Rows) > 0
		for i := range a.Rows {
			f.meet(&a.Rows[i])
			beyond = beyond || a.Rows[i].ID > c.part.Last
		}
		for i := range a.Rejects {
			f.meetReject(&a.Rejects[i])
		}
		if read += len(a.Rows) + len(a.Rejects); c.cfg.ByID && beyond {
			break // the rest lies behind the part
		}
		progress(topicRows, read)
	}
	f.suspectUnmet()
	return nil
}

func (f *firstReading) foldIntoTable(p watermark.Published) {
	switch {
	case p.Foreign: // each part meets them
		if f.part.First == everyID.First && p.Unread {
			f.report.Unread++
		} else if f.part.First == everyID.First && !p.Tombstone {
			f.report.Foreign++
		}
	case !f.part.Holds(p.ID):
	case p.Stray:
		if now := foldStray(f.strays[p.ID], p); len(now) > 0 {
			f.strays[p.ID] = now
			f.makeRoom()
		} else {
			delete(f.strays, p.ID)
		}
	case p.Tombstone:
		f.rows.Remove(p.ID)
	default:
		f.put(p.ID, rowset.VersionOf(p.UpdatedAt, p.Hash))
	}
}

// put notes a row. If there is no room, the part ends earlier, maybe before this row.
func (f *firstReading) put(id int64, v rowset.Version) {
	for f.part.Holds(id) && !f.rows.Put(id, v) {
		var sample []int64
		for id := range f.rows.All() {
			if sample = append(sample, id); len(sample) == 1024 {
				break
			}
		}
		f.endBefore(nearLast(sample))
		f.rows.RemoveFrom(f.part.Last + 1)
	}
}

// makeRoom lets the part end earlier if more rows differ than one part takes in.
func (f *firstReading) makeRoom() {
	for {
		n := len(f.suspects) + len(f.strays) + len(f.letters)
		if n < 2 || n <= f.cfg.MaxSuspects && f.kept <= int(max(f.cfg.Memory/8, 1<<20)) {
			return
		}
		ids := slices.Collect(maps.Keys(f.suspects))
		ids = slices.AppendSeq(slices.AppendSeq(ids, maps.Keys(f.strays)), maps.Keys(f.letters))
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) < 2 {
			return
		}
		f.endBefore(nearLast(ids))
		f.crowded = true
	}
}

// nearLast returns an id that is above about seven eighths of the ids, and above at least one.
func nearLast(ids []int64) int64 {
	slices.Sort(ids)
	return ids[max(1, len(ids)*7/8)]
}

// endBefore lets the part end before id, or where it ends already.
func (f *firstReading) endBefore(id int64) {
	f.part.Last = min(f.part.Last, id-1)
	for id := range f.suspects {
		if id > f.part.Last {
			f.Forget(id)
		}
	}
	behind := func(id int64) bool { return id > f.part.Last }
	maps.DeleteFunc(f.strays, func(id int64, _ []int32) bool { return behind(id) })
	maps.DeleteFunc(f.letters, func(id int64, _ bool) bool { return behind(id) })
}

// differ returns the suspect id.
func (f *firstReading) differ(id int64) *suspect {
	v, held := f.rows.Get(id)
	s := f.suspect(id, v, held && v.Millis != notShown.Millis)
	s.strays = f.strays[id]
	f.count(s)
	return s
}

// meet takes one row of the source. A source may repeat a row.
func (f *firstReading) meet(row *schemas.Record) {
	id := row.ID
	v, held := f.rows.Get(id)
	inTopic := held && v.Millis != notShown.Millis
	if !f.part.Holds(id) || !inTopic && row.UpdatedAt < f.cfg.Start {
		return // the reading includes it by its created_at; by its updated_at the topic does not
	}
	if !held {
		v = notShown
	}
	if !v.Marked {
		v.Marked = true
		f.put(id, v)
	}
	equal := inTopic && v.Equal(row.UpdatedAt.Millis(), schemas.Hash(row.Value)) && len(f.strays[id]) == 0
	_, letter := f.cfg.Letters[id]
	switch {
	case !f.part.Holds(id), equal && !letter:
		return
	case !equal && f.tooLarge(row):
		f.letters[id] = true
	default:
		s := f.differ(id)
		s.show(row)
		f.count(s)
	}
	f.makeRoom()
}

// meetReject takes a row of the source that cannot be published. It counts as a dead letter even if the topic
// still holds an older version.
func (f *firstReading) meetReject(r *schemas.Reject) {
	if !r.HasID {
		if f.report.Nameless++; len(f.nameless) < mostNameless {
			f.nameless = append(f.nameless, *r)
		}
		return
	}
	if !f.part.Holds(r.ID) {
		return
	}
	f.letters[r.ID] = true
	if v, held := f.rows.Get(r.ID); held {
		v.Marked = true
		f.rows.Put(r.ID, v)
	}
	if !f.hasLetter(r) {
		s := f.differ(r.ID)
		s.showReject(r)
		f.count(s)
	}
	f.makeRoom()
}

// suspectUnmet makes suspects of the rows that the source did not show: those of the topic, those with a
// stray, and those with a dead letter. It counts the part's rows.
func (f *firstReading) suspectUnmet() {
	counted := func(id int64, v rowset.Version) bool { return f.part.Holds(id) && v.Millis != notShown.Millis }
	for id, v := range f.rows.All() {
		if counted(id, v) && !v.Marked && v.Millis >= f.cfg.Start.Millis() {
			f.differ(id)
			f.makeRoom()
		}
	}
	for id := range f.strays {
		f.differ(id)
		f.makeRoom()
	}
	for id := range f.cfg.Letters {
		if f.part.Holds(id) && !f.letters[id] {
			f.differ(id)
			f.makeRoom()
		}
	}
	for id, v := range f.rows.All() {
		if counted(id, v) {
			f.report.TopicRows++
			if !v.Marked && v.Millis < f.cfg.Start.Millis() {
				f.report.Early++
			}
		}
		if f.part.Holds(id) && v.Marked && !f.letters[id] {
			f.report.SourceRows++
		}
	}
}
