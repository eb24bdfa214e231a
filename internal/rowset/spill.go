package rowset

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"sort"
	"unsafe"
)

// Note is a version of a row with the owner's own bits beside it.
type Note struct {
	ID int64
	Version
	Beside uint32
}

// Spill gathers notes of rows in memory and, when that is full, in a file, 24 bytes each. It gives back those
// of a range of ids, by id, and of one id in the order in which they were added. Of an id's notes below
// Lasting the last counts, and of equal ones beside each other too: Spill may drop the others. It is for one
// goroutine.
//
// When the memory is full, Spill sorts the notes in it by id and writes them behind the others: a run. So the
// notes of a range lie together in each run, and a search finds where.
//
// If the file cannot be written, Spill drops the notes with the higher ids, and takes in no more of them from
// then on: Last is the last id of which it has every note.
//
// The file has no name. So nothing is left of it when the process ends.
type Spill struct {
	dir      string
	left     int64 // bytes that the file may grow by
	capacity int   // notes in memory

	memory, spare area[spilled] // spare has room to sort
	n             int           // notes in memory
	file          *os.File
	runs          []run
	size          int64 // of the file, in notes
	last          int64
	err           error
}

// run is sorted notes: those in memory, or if that is nil those in the file from begin on.
type run struct {
	begin  int64
	length int
	memory []spilled
}

// spilled is a note as it lies in memory and in the file.
type spilled struct {
	entry
	beside uint32
}

// Lasting is the least Beside of the notes that no later one replaces.
const Lasting = 1 << 30

const (
	leastNotes   = 64
	spilledBytes = 24
	readAtOnce   = 64 << 10 / spilledBytes // notes
)

var errNoSpace = errors.New("they may not take more")

// NewSpill returns an empty Spill that takes so many bytes of memory while notes are added, and half of them
// after Flush. Its file lies in dir and takes so many bytes at most.
func NewSpill(dir string, memory int, bytes int64) *Spill {
	return &Spill{dir: dir, left: bytes, capacity: max(leastNotes, memory/2/spilledBytes), last: math.MaxInt64}
}

// Len is the number of notes.
func (s *Spill) Len() int { return int(s.size) + s.n }

// Last is the last id of which all notes are there.
func (s *Spill) Last() int64 { return s.last }

// Err is why the file could not be written, or nil.
func (s *Spill) Err() error { return s.err }

// Add adds a note. Its error means that the memory is full of notes of one id.
func (s *Spill) Add(n Note) error {
	if n.ID > s.last {
		return nil
	}
	if s.memory.elements == nil {
		s.memory, s.spare = newArea[spilled](s.capacity), newArea[spilled](s.capacity)
	}
	s.memory.elements[s.n] = spilled{pack(n.ID, n.Version), n.Beside}
	if s.n++; s.n < s.capacity {
		return nil
	}
	if s.sort(); s.n < s.capacity*3/4 || s.write() == nil {
		return nil
	}
	notes := s.memory.elements[:s.n]
	end := notes[s.n*3/4].id()
	if s.n = sort.Search(s.n, func(i int) bool { return notes[i].id() >= end }); s.n == 0 {
		return fmt.Errorf("the memory is full of versions of row %d: %w", end, s.err)
	}
	s.last = end - 1
	return nil
}

// Flush has to follow the last Add before notes are read, and Release has to come before the next Add.
func (s *Spill) Flush() {
	s.sort()
	s.spare.free()
	s.runs = append(s.runs, run{length: s.n, memory: s.memory.elements[:s.n]})
	if s.size > 0 {
		_ = s.Release() // else they stay in memory
	}
}

// Release gives the memory back after Flush. The notes in it go to the file. If that fails they stay.
func (s *Spill) Release() error {
	if s.n > 0 {
		if err := s.write(); err != nil {
			return err
		}
	}
	s.runs = slices.DeleteFunc(s.runs, func(r run) bool { return r.memory != nil })
	s.memory.free()
	return nil
}

// write makes a run in the file of the sorted notes in memory.
func (s *Spill) write() (err error) {
	defer func() { s.err = cmp.Or(err, s.err) }()
	bytes := bytesOf(s.memory.elements[:s.n])
	if s.left < int64(len(bytes)) {
		return errNoSpace
	}
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.dir, "storestream-"); err != nil {
			return err
		}
		if err := os.Remove(s.file.Name()); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(bytes, s.size*spilledBytes); err != nil {
		return err
	}
	s.left -= int64(len(bytes))
	s.runs = append(s.runs, run{begin: s.size, length: s.n})
	s.size += int64(s.n)
	s.n = 0
	return nil
}

// sort sorts the notes in memory by id, byte by byte, which keeps the order of those of one id. Then it drops
// those that a later one replaces.
func (s *Spill) sort() {
	for shift := 0; shift < 64 && s.n > 0; shift += 8 {
		digit := func(n *spilled) uint8 { return uint8(ordered(n.id()) >> shift) }
		from, to := s.memory.elements[:s.n], s.spare.elements[:s.n]
		var next [256]int
		for i := range from {
			next[digit(&from[i])]++
		}
		if next[digit(&from[0])] == s.n {
			continue
		}
		at := 0
		for d, count := range next {
			next[d] = at
			at += count
		}
		for i := range from {
			d := digit(&from[i])
			to[next[d]] = from[i]
			next[d]++
		}
		s.memory, s.spare = s.spare, s.memory
	}
	notes := s.memory.elements[:s.n]
	s.n = 0
	for i := range notes {
		n, last := notes[i], i+1 == len(notes)
		if !last && n.id() == notes[i+1].id() && (n == notes[i+1] || max(n.beside, notes[i+1].beside) < Lasting) {
			continue
		}
		notes[s.n] = n
		s.n++
	}
}

// ordered maps ids to unsigned numbers in the same order.
func ordered(id int64) uint64 { return uint64(id) ^ 1<<63 }

// search returns the place in a run of the first note with an id of at least first.
func (s *Spill) search(r run, first int64, failed *error) int {
	return sort.Search(r.length, func(i int) bool {
		var n [1]spilled
		if err := s.read(n[:], r, i); err != nil {
			*failed = err
		}
		return n[0].id() >= first
	})
}

// read reads notes of a run from a place on.
func (s *Spill) read(notes []spilled, r run, at int) error {
	if r.memory != nil {
		copy(notes, r.memory[at:])
		return nil
	}
	if _, err := s.file.ReadAt(bytesOf(notes), (r.begin+int64(at))*spilledBytes); err != nil {
		return fmt.Errorf("reading a scratch file: %w", err)
	}
	return nil
}

// cursor goes through the notes of a run. block has those that were read and not yielded, and at is the place
// behind them.
type cursor struct {
	run
	at          int
	block, room []spilled
}

// Notes yields the notes of the ids from first to last, by id.
func (s *Spill) Notes(first, last int64) iter.Seq2[Note, error] {
	return func(yield func(Note, error) bool) {
		var err error
		cursors := make([]cursor, len(s.runs))
		size := max(16, min(readAtOnce, s.capacity/8/max(1, len(s.runs))))
		for i, r := range s.runs {
			cursors[i] = cursor{run: r, at: s.search(r, first, &err), room: make([]spilled, size)}
		}
		for err == nil {
			var least *cursor // the oldest of those with the lowest id
			for i := range cursors {
				c := &cursors[i]
				if len(c.block) == 0 && c.at < c.length && err == nil {
					c.block = c.room[:min(size, c.length-c.at)]
					err = s.read(c.block, c.run, c.at)
					c.at += len(c.block)
				}
				if len(c.block) > 0 && (least == nil || c.block[0].id() < least.block[0].id()) {
					least = c
				}
			}
			if least == nil || err != nil || least.block[0].id() > last {
				break
			}
			n := &least.block[0]
			if least.block = least.block[1:]; !yield(Note{n.id(), n.version(), n.beside}, nil) {
				return
			}
		}
		if err != nil {
			yield(Note{}, err)
		}
	}
}

// Close gives memory and file back.
func (s *Spill) Close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name and is lost anyway
	}
	s.memory.free()
	s.spare.free()
	*s = Spill{}
}

// bytesOf returns the memory of notes.
func bytesOf(notes []spilled) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(notes))), len(notes)*spilledBytes)
}
