package reconcile

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// progressEvery is how many records of the topic pass between two reports of progress.
const progressEvery = 10_000

// The kinds of notes, in the highest bits beside the version. So notes of one id come in this order. Those of
// the source also have how many bits the size of the row has, in the middle. The lowest bits are the day on
// which the row was created, if it is needed, or the partition of a stray, or for a replay the row's size.
const (
	topicRecord  uint32 = iota << kindShift // a tombstone is marked
	strayRecord                             // a tombstone is marked
	knownLetter                             // of Config.Letters
	sourceReject                            // its hash is that of its dead letter
	sourceLarge                             // it does not fit into a record of the topic
	sourceRow

	kindShift = 29
	sizeShift = 24
	lowest    = 1<<sizeShift - 1
	dayMillis = 24 * 60 * 60 * 1000
)

// readPart is First for a part. It reads both sides, if no part before has done so.
func (c *Comparison) readPart(ctx context.Context, progress func(topicRows, sourceRows int)) (err error) {
	if c.notes.Len() == 0 {
		// The notes take half of the memory. The suspects take an eighth, at least 1 MiB. Readers of both sides
		// take the rest.
		c.notes = rowset.NewSorter(int(c.cfg.Memory/2), c.cfg.Scratch)
		err = c.read(ctx, progress)
	}
	if err == nil {
		err = c.compareNotes()
	}
	// Until the next part the notes must not take memory. If they cannot be written, the part reads again.
	if err != nil || c.last == math.MaxInt64 || c.notes.Spill() != nil {
		c.notes.Close()
	}
	if c.ends == nil {
		c.ends = c.notesEnd
	}
	return err
}

// read notes what both sides have, also of ids before the part. It reads both at the same time (package
// comment).
func (c *Comparison) read(ctx context.Context, progress func(topicRows, sourceRows int)) error {
	c.report.Foreign, c.report.Unread, c.report.Nameless, c.report.Wanted = 0, 0, 0, 0
	c.report.Shown, c.nameless = false, nil
	for id := range c.cfg.Letters {
		if err := c.notes.Add(rowset.NoteOf(id, rowset.Version{}, knownLetter)); err != nil {
			return err
		}
	}
	var topicRows, sourceRows atomic.Int64
	tell := func() { progress(int(topicRows.Load()), int(sourceRows.Load())) }
	endsNoted := make(chan struct{})
	begin := sync.OnceFunc(func() { close(endsNoted) })
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		defer begin()
		defer wait.Recover("reading the topic", &err)
		c.notesEnd, err = c.topic(ctx, nil, nil, func(p watermark.Published) error {
			begin()
			if topicRows.Add(1)%progressEvery == 0 {
				tell()
			}
			return c.noteRecord(&p)
		})
		return err
	})
	both.Go(func() (err error) {
		defer wait.Recover("reading the source", &err)
		if <-endsNoted; c.cfg.Again != nil {
			return nil
		}
		c.before = schemas.InstantOf(c.cfg.Now().Add(-c.cfg.Overlap))
		for a, err := range c.cfg.Source(ctx, nil) {
			c.report.Shown = c.report.Shown || len(a.Rows) > 0
			for i := 0; i < len(a.Rows) && err == nil; i++ {
				err = c.noteRow(&a.Rows[i])
			}
			for i := 0; i < len(a.Rejects) && err == nil; i++ {
				err = c.noteReject(&a.Rejects[i])
			}
			if err != nil {
				return err
			}
			sourceRows.Add(int64(len(a.Rows) + len(a.Rejects)))
			tell()
		}
		return nil
	})
	return both.Wait()
}

func (c *Comparison) noteRecord(p *watermark.Published) error {
	if p.Unread {
		c.report.Unread++
	} else if p.Foreign && !p.Tombstone {
		c.report.Foreign++
	}
	if p.Foreign {
		return nil
	}
	v, beside := rowset.VersionOf(p.UpdatedAt, p.Hash), topicRecord|dayOf(p.CreatedAt)
	if v.Marked = p.Tombstone; c.cfg.Again != nil {
		beside = topicRecord | uint32(min(p.Size, lowest))
		if !p.Tombstone {
			c.report.Wanted++
		}
	} else if p.Stray {
		beside = strayRecord | uint32(p.Partition)&lowest
	}
	return c.notes.Add(rowset.NoteOf(p.ID, v, beside))
}

func (c *Comparison) noteRow(row *schemas.Record) error {
	beside := sourceRow
	if c.tooLarge(row) {
		beside = sourceLarge
	}
	if !c.cfg.ByID {
		beside |= dayOf(c.cfg.CreatedAt(row.Value))
	}
	return c.notes.Add(rowset.NoteOf(row.ID, versionOfRow(row), beside|sizeOf(len(row.Value))))
}

func (c *Comparison) noteReject(r *schemas.Reject) error {
	if r.HasID {
		v := rowset.VersionOf(r.UpdatedAt, watermark.DeadLetterHash(r.Row))
		return c.notes.Add(rowset.NoteOf(r.ID, v, sourceReject|sizeOf(len(r.Row)+len(r.Err))))
	}
	if c.report.Nameless++; len(c.nameless) < mostNameless {
		c.nameless = append(c.nameless, *r)
	}
	return nil
}

// compareNotes compares the rows that were noted, by id. The part ends before one that has no room if it
// differs.
func (c *Comparison) compareNotes() error {
	id, s, met := c.cfg.From, c.newSuspect(c.cfg.From), false
	err := c.notes.Each(id, func(n *rowset.Note) bool {
		if next := n.ID(); next > id {
			if c.judge(id, &s, met); c.full() {
				c.last, s, met = next-1, suspect{}, false
				return false
			}
			id, s, met = next, c.newSuspect(next), false
		}
		met = c.takeNote(&s, n) || met
		return true
	})
	c.judge(id, &s, met)
	return err
}

// takeNote notes in s the content of a note, and reports whether the source showed the row. The notes of the
// topic come first.
func (c *Comparison) takeNote(s *suspect, n *rowset.Note) (met bool) {
	id, v, kind := n.ID(), n.Version(), n.Beside>>kindShift<<kindShift
	updated, day := schemas.InstantOfMillis(v.Millis), dayAt(n.Beside)
	equal := s.inTopic && v == s.topic
	switch {
	case kind < knownLetter:
		if s.again {
			s.unseen, day = int(n.Beside&lowest), schemas.MinInstant
		}
		s.fold(watermark.Published{ID: id, UpdatedAt: updated, Hash: v.Hash, CreatedAt: day, Tombstone: v.Marked,
			Stray: kind == strayRecord, Partition: int32(n.Beside & lowest)})
		return false
	case kind == knownLetter, kind != sourceReject && !s.inTopic && updated < c.cfg.Start:
		return false // the reading includes the row by its created_at; by its updated_at the topic does not
	case kind == sourceReject: // a dead letter even if the topic still holds an older version
		c.letters[id] = true
		if c.hasLetter(id, v.Hash) {
			return true
		}
		v = rejected
	case equal && !s.letter && len(s.strays) == 0:
		return true // also the topic's version beside another one: the looks find out which is the row
	case !equal && kind == sourceLarge:
		c.letters[id] = true
		return true
	}
	if s.show(v, updated) {
		if s.unseen = 1 << (n.Beside >> sizeShift & 31); day > schemas.MinInstant {
			s.created = day
		}
	}
	return true
}

// judge counts a row, and makes it a suspect if it differs: if the source showed another version, or no
// version of a row of the topic, or if its dead letter or a stray is too much.
//
// Every copy of the source has the topic's rows from before the last overlap. If a look shows one of them
// unchanged, the first reading was not shown all rows, and then a row that the topic lacks may be among them.
func (c *Comparison) judge(id int64, s *suspect, met bool) {
	unmet := s.inTopic && !met
	early := unmet && s.topic.Millis < c.cfg.Start.Millis()
	if s.inTopic {
		c.report.TopicRows++
	}
	if early {
		c.report.Early++
	}
	if met && !c.letters[id] {
		c.report.SourceRows++
	}
	if c.later[id] {
		return // its record is behind the end offsets of the replay
	}
	if len(s.versions) > 0 || unmet && !early || len(s.strays) > 0 || s.letter && !c.letters[id] {
		kept := *s
		kept.topicBefore = s.topic
		if unmet && !early && s.topic.Millis < c.before.Millis() {
			kept.unmet = s.topic
		}
		c.suspects[id] = &kept
		c.count(&kept)
	}
}

// full reports whether the part takes in no more rows that differ.
func (c *Comparison) full() bool {
	n := len(c.suspects) + len(c.letters)
	return n > 0 && (n >= c.cfg.MaxSuspects || c.kept >= int(max(c.cfg.Memory/8, 1<<20)))
}

// sizeOf returns the bits beside a version for the size of a row.
func sizeOf(bytes int) uint32 { return uint32(bits.Len(uint(bytes))) << sizeShift }

// dayOf returns the lowest bits for a day.
func dayOf(i schemas.Instant) uint32 {
	return uint32((i.Millis()-schemas.MinInstant.Millis())/dayMillis) & lowest
}

// dayAt returns the day in the lowest bits.
func dayAt(beside uint32) schemas.Instant {
	return schemas.InstantOfMillis(schemas.MinInstant.Millis() + int64(beside&lowest)*dayMillis)
}
