package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"os"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Scratch keeps what the parts of a comparison need of the topic, and of a source that is not read by id. So
// each side is read once, however many parts there are. Only what came into the topic since is read before
// each further part.
//
// It keeps ids, times and hashes, in memory if that is enough, else in a file. If the file cannot be written,
// it keeps those of the lowest ids, and the part behind them reads both sides again.
//
// It serves one comparison at a time.
type Scratch struct {
	dir   string
	bytes int64
	err   error

	notes      *rowset.Spill
	from       int64   // of the newest part
	ends       []int64 // how far the topic was read, nil if it was not
	sourceRead bool
	shown      bool             // Report.Shown of the source's reading
	nameless   []schemas.Reject // Comparison.Nameless of it
	rejects    int              // and how many there are
}

// WithoutScratch is what to know if the file cannot be written, for people.
const WithoutScratch = "parts of a sweep or verify read topic and service again, because a scratch file " +
	"cannot be written: set TMPDIR to a directory with room for sweep.scratch, or raise that"

// ScratchDir is the directory of the file. /tmp would often be memory.
func ScratchDir() string { return cmp.Or(os.Getenv("TMPDIR"), "/var/tmp") }

// NewScratch returns a Scratch with a file in dir that takes so many bytes at most. Close it in the end.
func NewScratch(dir string, bytes int64) *Scratch { return &Scratch{dir: dir, bytes: bytes} }

// Close gives memory and file back. The Scratch may be used again.
func (s *Scratch) Close() {
	if s != nil && s.notes != nil {
		s.notes.Close()
		*s = Scratch{dir: s.dir, bytes: s.bytes, err: s.err}
	}
}

// Err is why the newest file could not be written, or nil.
func (s *Scratch) Err() error {
	if s == nil {
		return nil
	}
	return s.err
}

// The kinds of notes. Each is a note's highest bits beside the version. The middle ones are how many bits the
// size of a source's row has. The lowest are the day on which a row was created, or the partition of a stray.
const (
	topicRow uint32 = iota << kindShift
	topicTombstone
	strayRow // from rowset.Lasting on, each counts
	strayTombstone
	sourceRow
	sourceLarge // it does not fit into a record
	sourceReject

	kindShift = 29
	sizeShift = 24
	lowest    = 1<<sizeShift - 1
	dayMillis = 24 * 60 * 60 * 1000
)

// read reads what is missing for the part that begins at c.cfg.From: all that the topic has since it was read
// before, and the source if it is not read by id. It returns the last id of which it has everything.
func (s *Scratch) read(ctx context.Context, c *Comparison, progress func(topicRows, sourceRows int)) (
	last int64, err error) {
	from := c.cfg.From
	if s.ends == nil || from == everyID.First || from < s.from || from > s.notes.Last() {
		s.Close()
		s.err, s.notes = nil, rowset.NewSpill(s.dir, c.rowMemory(), s.bytes)
	}
	s.from = from
	wanted := func(id int64) bool { return from <= id && id <= s.notes.Last() }
	s.ends, err = c.cfg.Topic(ctx, s.ends, wanted, func(p watermark.Published) error {
		if s.notes.Len()%progressEvery == 0 {
			progress(s.notes.Len(), 0)
		}
		if p.Foreign {
			return c.foldIntoTable(p)
		}
		return s.addRecord(&p)
	})
	if err != nil {
		return 0, err
	}
	switch topic := s.notes.Len(); {
	case c.cfg.ByID:
	case s.sourceRead:
		c.report.Shown, c.report.Nameless, c.nameless = s.shown, s.rejects, s.nameless
	default:
		err = c.readSource(ctx, Range{from, everyID.Last}, func(read int) { progress(topic, read) },
			func(shown *sighting) error { return s.addShown(c, shown) })
		s.sourceRead, s.shown, s.rejects, s.nameless = true, c.report.Shown, c.report.Nameless, c.nameless
	}
	if err != nil {
		return 0, err
	}
	s.notes.Flush()
	s.noteErr()
	return s.notes.Last(), nil
}

// release gives the memory back after a part that ended at last. If that takes a file which cannot be
// written, or if no part follows, all that was read is dropped.
func (s *Scratch) release(last int64) {
	if last == everyID.Last || s.notes.Release() != nil {
		s.noteErr()
		s.Close()
	}
}

// noteErr notes why the file could not be written.
func (s *Scratch) noteErr() {
	if err := s.notes.Err(); err != nil {
		s.err = fmt.Errorf("scratch file in %s: %w", s.dir, err)
	}
}

// addRecord adds a record of the topic.
func (s *Scratch) addRecord(p *watermark.Published) error {
	beside := topicRow | dayOf(p.CreatedAt)
	if p.Stray {
		beside = strayRow | uint32(p.Partition)&lowest
	}
	if p.Tombstone {
		beside += topicTombstone - topicRow
	}
	return s.notes.Add(rowset.Note{ID: p.ID, Version: rowset.VersionOf(p.UpdatedAt, p.Hash), Beside: beside})
}

// addShown adds a row that the source shows.
func (s *Scratch) addShown(c *Comparison, shown *sighting) error {
	if shown.id < s.from {
		return nil
	}
	var beside uint32
	var size int
	if shown.bad {
		beside, size = sourceReject, len(shown.reject.Row)+len(shown.reject.Err)
	} else {
		beside, size = sourceRow|dayOf(c.cfg.CreatedAt(shown.row.Value)), len(shown.row.Value)
		if c.tooLarge(shown.row) {
			beside += sourceLarge - sourceRow
		}
	}
	return s.notes.Add(rowset.Note{ID: shown.id, Version: shown.version,
		Beside: beside | uint32(bits.Len(uint(size)))<<sizeShift})
}

// eachRecord calls fold with each record of the topic of these ids, as the topic's reader does.
func (s *Scratch) eachRecord(ids Range, fold func(watermark.Published) error) error {
	for n, err := range s.notes.Notes(ids.First, ids.Last) {
		if kind := n.Beside >> kindShift << kindShift; err == nil && kind < sourceRow {
			p := watermark.Published{ID: n.ID, UpdatedAt: schemas.InstantOfMillis(n.Millis), Hash: n.Hash,
				CreatedAt: dayAt(n.Beside), Tombstone: kind == topicTombstone || kind == strayTombstone}
			if kind >= strayRow {
				p.Stray, p.Partition = true, int32(n.Beside&lowest)
			}
			err = fold(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachShown calls take with each row of these ids that the source showed.
func (s *Scratch) eachShown(ids Range, take func(*sighting) error) error {
	var shown sighting
	for n, err := range s.notes.Notes(ids.First, ids.Last) {
		if kind := n.Beside >> kindShift << kindShift; err == nil && kind >= sourceRow {
			shown = sighting{id: n.ID, version: n.Version, updated: schemas.InstantOfMillis(n.Millis),
				bad: kind == sourceReject, large: kind == sourceLarge, size: 1 << (n.Beside >> sizeShift & 31),
				created: dayAt(n.Beside)}
			err = take(&shown)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dayOf returns the lowest bits for a day.
func dayOf(i schemas.Instant) uint32 {
	return uint32((i.Millis()-schemas.MinInstant.Millis())/dayMillis) & lowest
}

// dayAt returns the day in the lowest bits.
func dayAt(beside uint32) schemas.Instant {
	return schemas.InstantOfMillis(schemas.MinInstant.Millis() + int64(beside&lowest)*dayMillis)
}
