package compare

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/storestream/storestream/internal/offheap"
)

// rowTable is what the first reading keeps of each row: its id, 44 bits that tell its version from others,
// and four marks. It is one flat table with open addressing, in memory that the garbage collector does not
// count: in its heap, every other part of the process might leave as much garbage again before it is
// collected. What is full stays full: it is for the caller to make room.
type rowTable struct {
	memory []byte // places of placeBytes
	places int
	n      int
	most   int // bytes
}

const (
	placeBytes = 14
	// At most 7 of 8 places are in use, for beyond that a search takes long.
	rowBytes    = placeBytes * 8 / 7
	leastPlaces = 256
)

// mark is a bit of what is known of a row.
type mark uint64

const (
	used   mark = 1 << iota // the place has a row
	met                     // the source has it
	absent                  // the topic has not
	early                   // in the topic it is from before the start

	markBits = 4
)

// version tells the versions of a row apart: 44 bits of a hash over its time and content.
type version uint64

func versionOf(millis int64, hash uint64) version {
	x := hash + uint64(millis)*0x9E3779B97F4A7C15
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return version(x >> (16 + markBits))
}

// newRowTable makes room for so many rows, but takes at most so many bytes.
func newRowTable(rows, most int) (*rowTable, error) {
	t := &rowTable{most: most}
	return t, t.allocate(min(most/placeBytes, max(leastPlaces, rows+rows/7+1)))
}

func (t *rowTable) allocate(places int) (err error) {
	t.places, t.n = places, 0
	t.memory, err = offheap.Allocate(places * placeBytes)
	return err
}

// free gives the memory back.
func (t *rowTable) free() {
	offheap.Release(t.memory)
	t.memory = nil
}

func (t *rowTable) at(place int) []byte {
	return t.memory[place*placeBytes : (place+1)*placeBytes : (place+1)*placeBytes]
}

func idAt(e []byte) int64 { return int64(binary.LittleEndian.Uint64(e)) }

// stateAt is an entry's version and marks.
func stateAt(e []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(e[8:])) | uint64(binary.LittleEndian.Uint16(e[12:]))<<32
}

func write(e []byte, id int64, state uint64) {
	binary.LittleEndian.PutUint64(e, uint64(id))
	binary.LittleEndian.PutUint32(e[8:], uint32(state))
	binary.LittleEndian.PutUint16(e[12:], uint16(state>>32))
}

// home is Fibonacci hashing: ids are dense, so neighbours must not come to lie side by side.
func (t *rowTable) home(id int64) int {
	hi, _ := bits.Mul64(uint64(id)*0x9E3779B97F4A7C15, uint64(t.places))
	return int(hi)
}

// find returns the entry of id, or the free one where it would go. There always is one.
func (t *rowTable) find(id int64) (place int, found bool) {
	for place = t.home(id); ; {
		e := t.at(place)
		if stateAt(e)&uint64(used) == 0 {
			return place, false
		}
		if idAt(e) == id {
			return place, true
		}
		if place++; place == t.places {
			place = 0
		}
	}
}

func (t *rowTable) get(id int64) (v version, m mark, known bool) {
	place, found := t.find(id)
	if !found {
		return 0, 0, false
	}
	state := stateAt(t.at(place))
	return version(state >> markBits), mark(state & (1<<markBits - 1)), true
}

// put sets the version and the marks of id; false: there is no room for it.
func (t *rowTable) put(id int64, v version, m mark) bool {
	place, found := t.find(id)
	if !found && (t.n+1)*8 > t.places*7 {
		if !t.grow() {
			return false
		}
		place, _ = t.find(id)
	}
	write(t.at(place), id, uint64(v)<<markBits|uint64(m|used))
	if !found {
		t.n++
	}
	return true
}

// grow moves everything to a larger table, as long as both together keep to the bound. It is for the few
// cases in which there are more rows than were expected.
func (t *rowTable) grow() bool {
	before := *t
	places := min(2*before.places, t.most/placeBytes-before.places)
	if places < before.places+before.places/4 || t.allocate(places) != nil {
		*t = before
		return false
	}
	before.each(func(e []byte) {
		place, _ := t.find(idAt(e))
		copy(t.at(place), e)
		t.n++
	})
	before.free()
	return true
}

func (t *rowTable) each(do func(e []byte)) {
	for place := range t.places {
		if e := t.at(place); stateAt(e)&uint64(used) != 0 {
			do(e)
		}
	}
}

func (t *rowTable) remove(id int64) {
	if place, found := t.find(id); found {
		t.removeAt(place)
	}
}

// removeAt closes the gap: an entry behind it moves into it if a search would reach that entry only across
// the gap.
func (t *rowTable) removeAt(hole int) {
	t.n--
	for place := hole; ; {
		if place++; place == t.places {
			place = 0
		}
		e := t.at(place)
		if stateAt(e)&uint64(used) == 0 {
			break
		}
		if home := t.home(idAt(e)); between(hole, home, place) {
			continue
		}
		copy(t.at(hole), e)
		hole = place
	}
	write(t.at(hole), 0, 0)
}

// between says whether home lies after hole and at or before place, going round.
func between(hole, home, place int) bool {
	if hole < place {
		return hole < home && home <= place
	}
	return hole < home || home <= place
}

// removeFrom removes the rows with ids of first and above.
func (t *rowTable) removeFrom(first int64) {
	for place := 0; place < t.places; {
		e := t.at(place)
		if stateAt(e)&uint64(used) != 0 && idAt(e) >= first {
			t.removeAt(place) // another entry may stand there now
		} else {
			place++
		}
	}
}

// sampled is how many ids tell where a share of them lies.
const sampled = 1024

// nearLast returns an id below which about seven eighths of the ids lie, and at least one. There are two ids
// or more.
func (t *rowTable) nearLast() int64 {
	ids := make([]int64, 0, sampled)
	for tries := 0; len(ids) < sampled && tries < 16*sampled; tries++ {
		if e := t.at(rand.IntN(t.places)); stateAt(e)&uint64(used) != 0 {
			ids = append(ids, idAt(e))
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > 1 {
		return ids[max(1, len(ids)*7/8)]
	}
	highest := int64(math.MinInt64)
	t.each(func(e []byte) { highest = max(highest, idAt(e)) })
	return highest
}
