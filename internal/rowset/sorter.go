package rowset

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Note is a version of a row with the owner's own bits beside it.
type Note struct {
	entry
	Beside uint32
}

// first is the highest byte beside a version.
func (n *Note) first() byte { return byte(n.Beside >> 24) }

// NoteOf returns the note of a version of row id.
func NoteOf(id int64, v Version, beside uint32) Note { return Note{pack(id, v), beside} }

// Sorter gives notes of rows back by id, those of one id by the highest byte beside the version, and then in
// the order in which they were added. It gathers them in memory. When that is full, it sorts them and writes
// them to a file, as a run. In the end it merges the runs. A note takes 24 bytes in the file and twice as
// much in memory. A Sorter is for one goroutine, but several may Add at the same time.
//
// The file has no name. So it is gone once the process ends, or Close or the garbage collector closes it.
type Sorter struct {
	adding   sync.Mutex
	room     int    // notes that the memory has room for
	memory   []Note // twice as many, for sort
	mapped   []byte
	n        int
	file     *os.File
	maxBytes int64
	size     int64 // of the file
	runs     []*io.SectionReader
}

const noteBytes = 24

// NewSorter returns a Sorter that takes so much memory, and a file of at most maxBytes.
func NewSorter(memory int, maxBytes int64) *Sorter {
	s := &Sorter{maxBytes: maxBytes, room: max(1, memory/noteBytes/2)}
	s.memory, s.mapped = allocate[Note](2 * s.room)
	return s
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
	s.adding.Lock()
	defer s.adding.Unlock()
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
			err = fmt.Errorf("writing what sweep.memory does not hold to a file, %d records of the topic and rows of "+
				"the service so far: %w: set TMPDIR to a directory with room for sweep.scratch, or raise that or "+
				"sweep.memory", s.Len(), err)
		}
	}()
	s.sort()
	run := bytesOf(s.memory[:s.n])
	if s.size+int64(len(run)) > s.maxBytes {
		return fmt.Errorf("the file may take %d bytes", s.maxBytes)
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

// sort sorts the notes in memory byte by byte, which keeps the order of equal ones.
func (s *Sorter) sort() {
	from, to := s.memory[:s.n], s.memory[len(s.memory)/2:][:s.n]
	for shift := -8; shift < 64 && s.n > 0; shift += 8 {
		digit := func(n *Note) byte {
			if shift < 0 {
				return n.first()
			}
			return byte((uint64(n.ID()) ^ 1<<63) >> shift)
		}
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

// Spill writes the notes in memory to the file, and gives the memory back. After it no note may be added.
func (s *Sorter) Spill() (err error) {
	if s.n > 0 {
		err = s.write()
	}
	if err == nil {
		release(s.mapped)
		s.memory, s.mapped = nil, nil
	}
	return err
}

// Each calls take with each note of the ids from a first one on, by id, until that returns false. After it no
// note may be added.
func (s *Sorter) Each(from int64, take func(*Note) (more bool)) error {
	var runs []io.Reader
	if s.file == nil {
		s.sort()
		all := bytesOf(s.memory[:s.n])
		runs = []io.Reader{since(io.NewSectionReader(bytes.NewReader(all), 0, int64(len(all))), from)}
	} else if err := s.Spill(); err != nil {
		return err
	}
	for _, run := range s.runs {
		buffer := min(64<<10, s.room*noteBytes/len(s.runs))
		runs = append(runs, bufio.NewReaderSize(since(run, from), buffer))
	}
	heads := make([]Note, len(runs)) // the next note of each run
	var order []int                  // the runs that are not at their end, the one whose note is next last
	later := func(i, j int) int {
		a, b := &heads[j], &heads[i]
		return cmp.Or(cmp.Compare(a.ID(), b.ID()), cmp.Compare(a.first(), b.first()), j-i)
	}
	advance := func(i int) error {
		_, err := io.ReadFull(runs[i], bytesOf(heads[i:i+1]))
		if err == nil {
			at, _ := slices.BinarySearchFunc(order, i, later)
			order = slices.Insert(order, at, i)
		} else if err == io.EOF {
			err = nil
		}
		return err
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

// since returns the rest of a run from its first note of an id that is no lower.
func since(run *io.SectionReader, id int64) *io.SectionReader {
	place := sort.Search(int(run.Size()/noteBytes), func(i int) bool {
		var note [1]Note
		_, err := run.ReadAt(bytesOf(note[:]), int64(i)*noteBytes)
		return err != nil || note[0].ID() >= id // a read of the rest returns the error again
	})
	at := int64(place) * noteBytes
	return io.NewSectionReader(run, at, run.Size()-at)
}

// Close gives memory and file back. The Sorter is empty then.
func (s *Sorter) Close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name and is lost anyway
	}
	release(s.mapped)
	*s = Sorter{}
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
