// Package rowset remembers one Version of each of many rows in little memory: what was published of a
// resource.
package rowset

import (
	"cmp"
	"math"
	"math/bits"
	"unsafe"

	"github.com/storestream/storestream/internal/offheap"
	"github.com/storestream/storestream/schemas"
)

// Set holds a Version by row id.
//
// It is flat memory: entries of 20 bytes in hash tables with open addressing (shards) that grow by an eighth.
// So it takes at most 24 bytes a row, once the shards have outgrown their first few hundred rows. It may be
// capped in bytes: at the cap Put takes no new rows, and says so. Large tables lie outside of the heap, so a
// Set that had many rows is to be closed. A Set is for one goroutine.
type Set struct {
	shards   [shards]shard
	n        int
	added    int // since the last Evict
	maxBytes int
	bytes    int
}

// RowBytes is what a row takes at most: what a number of bytes holds, divided by it, is how many rows.
const RowBytes = 24

const (
	shards       = 256
	entryBytes   = 20
	shardMinimum = 8
	// A shard doubles up to this many places, and Evict leaves it that large: a set that fills and empties all
	// the time is not built anew each time.
	shardSmall = 256
	// A table of so many bytes lies outside of the heap. That is a set of some 800,000 rows.
	mappedBytes = 64 << 10
)

// entry is 160 bits: the id (64), the updated_at in milliseconds since MinInstant (49, which reach past
// MaxInstant), 45 bits of the content's hash, a bit that says the entry is in use, and the mark.
//
// A row is equal to a version when hash and time are. So a changed row is taken for equal only if it has the
// same millisecond and the same 45 bits.
type entry [5]uint32

type shard struct {
	entries []entry
	n       int
	mapped  []byte // the memory of entries, if that is not on the heap
}

const (
	hashBits = 45
	hashMask = 1<<hashBits - 1
	usedBit  = 1 << 0
	markBit  = 1 << 1
)

// Version is what is known of a row.
type Version struct {
	Millis int64  // updated_at, in milliseconds since the epoch: Avro keeps no more
	Hash   uint64 // schemas.Hash, its lower 45 bits
	Marked bool   // whatever the owner of the Set means by it
}

// Equal says whether a row with this time and content is v.
func (v Version) Equal(millis int64, hash uint64) bool {
	return v.Millis == millis && (v.Hash^hash)&hashMask == 0
}

var epochMillis = schemas.MinInstant.Millis()

func pack(id int64, v Version) entry {
	t := uint64(v.Millis - epochMillis)
	h := v.Hash & hashMask
	flags := uint32(usedBit)
	if v.Marked {
		flags |= markBit
	}
	// The last 96 bits: time 49 | hash 45 | flags 2.
	return entry{uint32(id), uint32(uint64(id) >> 32),
		uint32(t), uint32(t>>32) | uint32(h)<<17, uint32(h>>15)<<2 | flags}
}

func (e *entry) used() bool { return e[4]&usedBit != 0 }
func (e *entry) id() int64  { return int64(uint64(e[0]) | uint64(e[1])<<32) }

func (e *entry) version() Version {
	t := uint64(e[2]) | uint64(e[3]&(1<<17-1))<<32
	h := uint64(e[3]>>17) | uint64(e[4]>>2)<<15
	return Version{Millis: int64(t) + epochMillis, Hash: h, Marked: e[4]&markBit != 0}
}

// New returns an empty set that takes at most maxBytes; 0: no cap.
func New(maxBytes int) *Set {
	return &Set{maxBytes: cmp.Or(maxBytes, math.MaxInt)}
}

// Len is the number of rows.
func (s *Set) Len() int { return s.n }

// Added is how many rows are new since the last Evict.
func (s *Set) Added() int { return s.added }

// Bytes is the memory that the rows take.
func (s *Set) Bytes() int { return s.bytes }

// spread is Fibonacci hashing. Ids are dense, so neighbours must not come to lie side by side.
func spread(id int64) uint64 { return bits.RotateLeft64(uint64(id)*0x9E3779B97F4A7C15, 32) }

// find returns the place of id in s, or the free place where it would go, if there is any place.
func (s *shard) find(id int64, h uint64) (at int, found bool) {
	at = s.home(h)
	for len(s.entries) > 0 {
		e := &s.entries[at]
		if !e.used() {
			return at, false
		}
		if e.id() == id {
			return at, true
		}
		if at++; at == len(s.entries) {
			at = 0
		}
	}
	return 0, false
}

// home maps a hash to a place without a division, for tables whose length is no power of two.
func (s *shard) home(h uint64) int {
	hi, _ := bits.Mul64(h<<8, uint64(len(s.entries)))
	return int(hi)
}

// Get returns the version of id.
func (s *Set) Get(id int64) (Version, bool) {
	h := spread(id)
	sh := &s.shards[h>>56]
	at, found := sh.find(id, h)
	if !found {
		return Version{}, false
	}
	return sh.entries[at].version(), true
}

// Put remembers v for id; false: the cap is reached and id was not there.
func (s *Set) Put(id int64, v Version) bool { return s.put(id, v, s.maxBytes) }

// PutBeyond is Put without the cap.
func (s *Set) PutBeyond(id int64, v Version) { s.put(id, v, math.MaxInt) }

func (s *Set) put(id int64, v Version, maxBytes int) bool {
	h := spread(id)
	sh := &s.shards[h>>56]
	full := (sh.n+1)*16 > len(sh.entries)*15 && !s.grow(sh, maxBytes) // at most 15 of 16 places are in use
	at, found := sh.find(id, h)
	if full && !found {
		return false
	}
	sh.entries[at] = pack(id, v)
	if !found {
		sh.n++
		s.n++
		s.added++
	}
	return true
}

// grow makes sh larger, unless the set would then take more than maxBytes.
func (s *Set) grow(sh *shard, maxBytes int) bool {
	size := max(shardMinimum, len(sh.entries)+len(sh.entries)/8+1)
	if len(sh.entries) < shardSmall {
		size = max(shardMinimum, 2*len(sh.entries))
	}
	more := (size - len(sh.entries)) * entryBytes
	if s.bytes+more > maxBytes {
		return false
	}
	s.bytes += more
	sh.rehash(size, func(*entry) bool { return true })
	return true
}

// rehash moves the entries that keep approves of to a table of size places.
func (s *shard) rehash(size int, keep func(*entry) bool) {
	old := *s
	s.allocate(size)
	for i := range old.entries {
		e := &old.entries[i]
		if e.used() && keep(e) {
			at, _ := s.find(e.id(), spread(e.id()))
			s.entries[at] = *e
			s.n++
		}
	}
	old.release()
}

// allocate gives s an empty table of size places.
func (s *shard) allocate(size int) {
	*s = shard{}
	if bytes := size * entryBytes; bytes >= mappedBytes {
		if memory, err := offheap.Allocate(bytes); err == nil {
			s.mapped, s.entries = memory, unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(memory))), size)
			return
		}
	}
	s.entries = make([]entry, size)
}

// release gives the table back.
func (s *shard) release() {
	if s.mapped != nil {
		offheap.Release(s.mapped)
	}
	*s = shard{}
}

// Close gives the memory of all rows back. The set is empty then.
func (s *Set) Close() {
	for i := range s.shards {
		s.shards[i].release()
	}
	s.n, s.bytes, s.added = 0, 0, 0
}

// Remove forgets id.
func (s *Set) Remove(id int64) {
	h := spread(id)
	sh := &s.shards[h>>56]
	at, found := sh.find(id, h)
	if !found {
		return
	}
	sh.n--
	s.n--
	// Close the gap: an entry behind it moves into it if a search would reach that entry only across the gap.
	hole := at
	for {
		if at++; at == len(sh.entries) {
			at = 0
		}
		e := &sh.entries[at]
		if !e.used() {
			break
		}
		home := sh.home(spread(e.id()))
		if between(hole, home, at) {
			continue
		}
		sh.entries[hole], hole = *e, at
	}
	sh.entries[hole] = entry{}
}

// between says whether home lies after hole and at or before at, going round.
func between(hole, home, at int) bool {
	if hole < at {
		return hole < home && home <= at
	}
	return hole < home || home <= at
}

// Evict forgets the rows with an updated_at before settled. Versions keep milliseconds: one in settled's own
// millisecond stays, or a row a few microseconds after settled would be taken for new.
func (s *Set) Evict(settled schemas.Instant) {
	limit := settled.Millis()
	s.keep(func(v Version) bool { return v.Millis >= limit })
}

// DropMarked forgets the rows with a mark, and gives their room back.
func (s *Set) DropMarked() {
	s.keep(func(v Version) bool { return !v.Marked })
	s.Shrink()
}

// keep forgets the rows that wanted is false of.
func (s *Set) keep(wanted func(Version) bool) {
	s.n, s.bytes, s.added = 0, 0, 0
	for i := range s.shards {
		sh := &s.shards[i]
		live := 0
		for j := range sh.entries {
			if e := &sh.entries[j]; e.used() && wanted(e.version()) {
				live++
			}
		}
		switch {
		case live == 0 && len(sh.entries) <= shardSmall:
			clear(sh.entries)
			sh.n = 0
		case live < sh.n:
			size := 0
			if live > 0 {
				size = min(max(shardMinimum, live*16/15+live/16+2), len(sh.entries)) // never past the cap
			}
			sh.rehash(size, func(e *entry) bool { return wanted(e.version()) })
		}
		s.n += sh.n
		s.bytes += len(sh.entries) * entryBytes
	}
}

// Shrink gives back what empty tables take. Evict keeps small ones, because they will be filled again; that
// is no use to a set at its cap, where another table has to grow.
func (s *Set) Shrink() {
	for i := range s.shards {
		if sh := &s.shards[i]; sh.n == 0 {
			s.bytes -= len(sh.entries) * entryBytes
			sh.release()
		}
	}
}

// Unmark takes the mark off all rows.
func (s *Set) Unmark() { s.each(func(e *entry) { e[4] &^= markBit }) }

// Each calls do for every row, in no order. do must not change the set.
func (s *Set) Each(do func(id int64, v Version)) {
	s.each(func(e *entry) { do(e.id(), e.version()) })
}

func (s *Set) each(do func(*entry)) {
	for i := range s.shards {
		for j := range s.shards[i].entries {
			if e := &s.shards[i].entries[j]; e.used() {
				do(e)
			}
		}
	}
}
