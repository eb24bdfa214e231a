package rowset

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Note is a version of a row with the owner's own bits beside it.
type Note struct {
	entry
	Beside uint32
}

// NoteOf returns the note of a version of row id.
func NoteOf(id int64, v Version, beside uint32) Note { return Note{pack(id, v), beside} }

// Sorter gathers notes of rows, and Each gives those of several Sorters back by id. When a Sorter's memory is
// full, it sorts the notes and writes them to a file, as a run. In the end Each merges the runs. A note takes
// 24 bytes in the file and twice as much in memory. A Sorter is for one goroutine.
//
// The file has no name. So it is gone once the process ends, or Close or the garbage collector closes it.
type Sorter struct {
	room   int    // notes that the memory has room for
	memory []Note // twice as many, for sort
	mapped []byte
	n      int
	file   *os.File
	size   int64         // of the file
	left   *atomic.Int64 // bytes that the files of all may still take
	runs   []*io.SectionReader
}

const noteBytes = 24

// NewSorters returns n Sorters. Together they take so much memory, and files of at most maxBytes.
func NewSorters(n, memory int, maxBytes int64) (all []*Sorter) {
	left := &atomic.Int64{}
	left.Store(maxBytes)
	for range n {
		s := &Sorter{left: left, room: max(1, memory/n/noteBytes/2)}
		s.memory, s.mapped = allocate[Note](2 * s.room)
		all = append(all, s)
	}
	return all
}

// ScratchFile returns an empty file without a name, in $TMPDIR or else in /var/tmp, for /tmp is often memory.
func ScratchFile() (*os.File, error) {
	file, err := os.CreateTemp(cmp.Or(os.Getenv("TMPDIR"), "/var/tmp"), "storestream-")
	if err == nil {
		err = os.Remove(file.Name())
	}
	return file, err
}

// Len is the number of notes.
func (s *Sorter) Len() int { return int(s.size/noteBytes) + s.n }

// Add adds a note. Its error says why the file cannot take the notes that the memory has no room for.
func (s *Sorter) Add(n Note) error {
	if s.n == s.room {
		if err := s.write(); err != nil {
			return err
		}
	}
	s.memory[s.n] = n
	s.n++
	return nil
}

// write makes a run in the file of the notes in memory.
func (s *Sorter) write() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing what sweep.memory does not hold to a file, %d records of the topic or rows of "+
				"the service so far: %w: set TMPDIR to a directory with room for sweep.scratch, or raise that or "+
				"sweep.memory", s.Len(), err)
		}
	}()
	s.sort()
	run := bytesOf(s.memory[:s.n])
	if s.left.Add(-int64(len(run))) < 0 {
		return errors.New("sweep.scratch has no room for more")
	}
	if s.file == nil {
		if s.file, err = ScratchFile(); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(run, s.size); err != nil {
		return err
	}
	s.runs = append(s.runs, io.NewSectionReader(s.file, s.size, int64(len(run))))
	s.size += int64(len(run))
	s.n = 0
	return nil
}

// sort sorts the notes in memory by id, byte by byte, which keeps the order of those of one id.
func (s *Sorter) sort() {
	from, to := s.memory[:s.n], s.memory[len(s.memory)/2:][:s.n]
	for shift := 0; shift < 64 && s.n > 0; shift += 8 {
		digit := func(n *Note) byte { return byte((uint64(n.ID()) ^ 1<<63) >> shift) }
		var place [256]int
		for i := range from {
			place[digit(&from[i])]++
		}
		if place[digit(&from[0])] == s.n {
			continue
		}
		at := 0
		for d, count := range place {
			place[d] = at
			at += count
		}
		for i := range from {
			d := digit(&from[i])
			to[place[d]] = from[i]
			place[d]++
		}
		from, to = to, from
	}
	copy(s.memory, from)
}

// Spill writes the notes in memory to files, and gives the memory back. After it no note may be added.
func Spill(all ...*Sorter) error {
	for _, s := range all {
		if s.n > 0 {
			if err := s.write(); err != nil {
				return err
			}
		}
		release(s.mapped)
		s.memory, s.mapped = nil, nil
	}
	return nil
}

// Each calls take with each note of all, by id, until that returns false. Of one id, those of the first
// Sorter come first, in the order in which they were added. After it no note may be added.
func Each(all []*Sorter, take func(*Note) (more bool)) error {
	var runs []io.Reader
	for _, s := range all {
		if s.file == nil {
			s.sort()
			runs = append(runs, bytes.NewReader(bytesOf(s.memory[:s.n])))
		} else if err := Spill(s); err != nil {
			return err
		}
		for _, run := range s.runs {
			buffer := min(64<<10, s.room*noteBytes/len(s.runs))
			runs = append(runs, bufio.NewReaderSize(io.NewSectionReader(run, 0, run.Size()), buffer))
		}
	}
	heads := make([]Note, len(runs)) // the next note of each run
	var order []int                  // the runs that are not at their end, the one whose note is next last
	later := func(i, j int) int { return cmp.Or(cmp.Compare(heads[j].ID(), heads[i].ID()), j-i) }
	advance := func(i int) error {
		if _, err := io.ReadFull(runs[i], bytesOf(heads[i:i+1])); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		at, _ := slices.BinarySearchFunc(order, i, later)
		order = slices.Insert(order, at, i)
		return nil
	}
	for i := range runs {
		if err := advance(i); err != nil {
			return err
		}
	}
	for len(order) > 0 {
		next := order[len(order)-1]
		if order = order[:len(order)-1]; !take(&heads[next]) {
			return nil
		}
		if err := advance(next); err != nil {
			return err
		}
	}
	return nil
}

// Close gives memory and files back. The Sorters are of no use then.
func Close(all []*Sorter) {
	for _, s := range all {
		_ = s.file.Close() // it has no name and is lost anyway
		release(s.mapped)
		*s = Sorter{}
	}
}

// bytesOf returns the memory of notes.
func bytesOf(notes []Note) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(notes))), len(notes)*noteBytes)
}

// allocate returns n elements, which are zero. Large ones lie outside the heap: beside them, the garbage
// collector would let as much garbage gather. Then mapped has to be released.
func allocate[T any](n int) (elements []T, mapped []byte) {
	if bytes := n * int(unsafe.Sizeof(*new(T))); bytes >= mappedBytes {
		const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE
		if mapped, err := unix.Mmap(-1, 0, bytes, prot, flags); err == nil {
			return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mapped))), n), mapped
		}
	}
	return make([]T, n), nil
}

// release gives back what allocate has mapped, or nil.
func release(mapped []byte) {
	if mapped != nil {
		_ = unix.Munmap(mapped) // of a mapping of ours it cannot fail
	}
}
