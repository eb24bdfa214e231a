// Package rowset remembers one Version of each of many rows in little memory. Deduplication keeps the rows
// that were published in it, and a comparison keeps the rows that the topic holds.
package rowset

import (
	"cmp"
	"iter"
	"math"
	"math/bits"

	"github.com/storestream/storestream/schemas"
)

// Set holds a Version by row id. It is for one goroutine.
//
// It is flat memory: entries of 20 bytes in hash tables with open addressing (shards) that grow by an
// eighth and some. So it takes at most 24 bytes a row once a shard has outgrown its first few hundred
// rows, and 10 more if it has notes. A Set may be capped in bytes. At the cap it drops the notes, and without
// notes Put takes no new row and returns false.
//
// Large tables lie outside the heap: beside them, the garbage collector would let as much garbage gather. So
// a Set that had many rows must be closed.
type Set struct {
	shards   []shard // a power of two
	shift    int     // what h is shifted by to find its shard
	n        int
	maxBytes int
	bytes    int
	// noted is set while there are notes. full is set once they had no room.
	noted, full bool
}

// RowBytes is the most that one row takes without its note. A number of bytes divided by RowBytes is the
// number of rows that surely fit.
const RowBytes = 24

const (
	// A Set with a cap has a shard for each capPerShard bytes of it, so that no shard is too small to share.
	maxShards    = 256
	capPerShard  = 256 << 10
	entryBytes   = 20
	textBytes    = 8
	shardMinimum = 8
	shardSmall   = 128 // entries up to which a table doubles: it grows often, and takes little memory
	// A table of so many bytes lies outside the heap. A set of some 100,000 rows has such tables.
	mappedBytes = 8 << 10
)

// entry is 160 bits: the id (64), the updated_at in milliseconds since MinInstant (49, which reach past
// MaxInstant), 45 bits of the content's hash, a bit that says the entry is in use, and the mark.
//
// A row equals a version if hash and time do. So a changed row is taken for equal only if it has the same
// millisecond and the same 45 bits.
type entry [5]uint32

type shard struct {
	entries []entry
	notes   []uint64 // by place. Nil if the Set has no notes
	n       int
	// The memory of entries and of notes, if that is not on the heap.
	mapped, mappedNotes []byte
}

const (
	hashBits = 45
	hashMask = 1<<hashBits - 1
	usedBit  = 1 << 0
	markBit  = 1 << 1
)

// Version tells one state of a row from its other states.
type Version struct {
	Millis int64  // updated_at, in milliseconds since the epoch: Avro keeps no more
	Hash   uint64 // the lower 45 bits of schemas.Hash
	Marked bool   // for the owner of the Set to use
}

// VersionOf returns the unmarked version with this time and content. Two of them can be compared by ==.
func VersionOf(updatedAt schemas.Instant, hash uint64) Version {
	return Version{Millis: updatedAt.Millis(), Hash: hash & hashMask}
}

// Equal reports whether a row with this time and content is v.
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

// ID is the row's id.
func (e *entry) ID() int64 { return int64(uint64(e[0]) | uint64(e[1])<<32) }

// Version is what pack was given.
func (e *entry) Version() Version {
	t := uint64(e[2]) | uint64(e[3]&(1<<17-1))<<32
	h := uint64(e[3]>>17) | uint64(e[4]>>2)<<15
	return Version{Millis: int64(t) + epochMillis, Hash: h, Marked: e[4]&markBit != 0}
}

// New returns an empty set that takes at most maxBytes. Zero means no cap.
func New(maxBytes int) *Set {
	s := &Set{maxBytes: cmp.Or(maxBytes, math.MaxInt)}
	logShards := bits.Len(uint(min(maxShards, max(1, s.maxBytes/capPerShard)))) - 1
	s.shards, s.shift = make([]shard, 1<<logShards), 64-logShards
	return s
}

// shard returns the shard of the id that spreads to h.
func (s *Set) shard(h uint64) *shard { return &s.shards[h>>s.shift] }

// Len is the number of rows.
func (s *Set) Len() int { return s.n }

// Bytes is the memory that the rows take.
func (s *Set) Bytes() int { return s.bytes }

// spread is Fibonacci hashing: its upper bits differ for ids that are dense, and for multiples of any number.
func spread(id int64) uint64 { return uint64(id) * 0x9E3779B97F4A7C15 }

// find returns the place of id in s, or the free place for it, if s has any place.
func (s *shard) find(id int64, h uint64) (at int, found bool) {
	at = s.home(h)
	for len(s.entries) > 0 {
		e := &s.entries[at]
		if !e.used() {
			return at, false
		}
		if e.ID() == id {
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
	sh := s.shard(h)
	at, found := sh.find(id, h)
	if !found {
		return Version{}, false
	}
	return sh.entries[at].Version(), true
}

// Put remembers v for id. It returns false if the cap is reached and id was not there.
func (s *Set) Put(id int64, v Version) bool { return s.put(id, v, s.maxBytes) }

// PutBeyond is Put without the cap.
func (s *Set) PutBeyond(id int64, v Version) { s.put(id, v, math.MaxInt) }

func (s *Set) put(id int64, v Version, maxBytes int) bool {
	h := spread(id)
	sh := s.shard(h)
	at, found := sh.find(id, h)
	if !found && !sh.roomIn(len(sh.entries)) {
		if !s.grow(h, maxBytes) {
			return false
		}
		at, _ = sh.find(id, h)
	}
	sh.entries[at] = pack(id, v)
	if s.noted {
		sh.notes[at] = 0
	}
	if !found {
		sh.n++
		s.n++
	}
	return true
}

// roomIn reports whether a table of so many places has room for one more row. At most 15 of 16 places are in
// use, because a search in a fuller table takes long.
func (s *shard) roomIn(places int) bool { return (s.n+1)*16 <= places*15 }

// Noted is a row to Find.
type Noted struct {
	ID      int64
	Known   bool // the Set has the row
	Version Version
	Note    uint64
}

// Note keeps a note of the version that the Set has of id, until Put replaces the version. Notes take 8 bytes
// a row. If there is no room for them, the Set drops all of them, for good.
func (s *Set) Note(id int64, note uint64) {
	if !s.noted && !s.addNotes() {
		return
	}
	h := spread(id)
	sh := s.shard(h)
	if at, found := sh.find(id, h); found {
		sh.notes[at] = note
	}
}

// addNotes makes room for notes. It returns false if there is none.
func (s *Set) addNotes() bool {
	notes := s.bytes / entryBytes * textBytes
	if s.full = s.full || notes > s.maxBytes-s.bytes; s.full {
		return false
	}
	s.noted = true
	s.bytes += notes
	for i := range s.shards {
		sh := &s.shards[i]
		sh.notes, sh.mappedNotes = allocate[uint64](len(sh.entries))
	}
	return true
}

func (s *Set) dropNotes() {
	s.bytes = s.bytes / s.width() * entryBytes
	s.noted, s.full = false, true
	for i := range s.shards {
		sh := &s.shards[i]
		release(sh.mappedNotes)
		sh.notes, sh.mappedNotes = nil, nil
	}
}

// Find fills in the Set's version and note of each row. The first loop only touches the rows' places, so that
// the processor fetches many of them at the same time: most of a Get is the wait for that.
func (s *Set) Find(rows []Noted) {
	for i := range rows {
		h := spread(rows[i].ID)
		if sh := s.shard(h); sh.n > 0 {
			rows[i].Note = uint64(sh.entries[sh.home(h)][0])
		}
	}
	for i := range rows {
		row := &rows[i]
		h := spread(row.ID)
		sh := s.shard(h)
		var at int
		if at, row.Known = sh.find(row.ID, h); row.Known {
			row.Version, row.Note = sh.entries[at].Version(), 0
			if s.noted {
				row.Note = sh.notes[at]
			}
		}
	}
}

// width is the bytes of one place.
func (s *Set) width() int {
	if s.noted {
		return entryBytes + textBytes
	}
	return entryBytes
}

// grow makes the shard of the id that spreads to h larger, as far as the set then takes at most maxBytes.
func (s *Set) grow(h uint64, maxBytes int) bool {
	sh := s.shard(h)
	size := len(sh.entries) + len(sh.entries)/8 + shardMinimum
	if len(sh.entries) < shardSmall {
		size = max(size, 2*len(sh.entries))
	}
	size = min(size, len(sh.entries)+(maxBytes-s.bytes)/s.width())
	if !sh.roomIn(size) && s.noted {
		s.dropNotes()
		return s.grow(h, maxBytes)
	}
	if !sh.roomIn(size) {
		return false
	}
	s.bytes += (size - len(sh.entries)) * s.width()
	sh.rehash(size, func(*entry) bool { return true })
	return true
}

// rehash moves the entries that keep approves of to a table of size places.
func (s *shard) rehash(size int, keep func(*entry) bool) {
	old := *s
	*s = shard{}
	s.entries, s.mapped = allocate[entry](size)
	if old.notes != nil {
		s.notes, s.mappedNotes = allocate[uint64](size)
	}
	for i := range old.entries {
		e := &old.entries[i]
		if e.used() && keep(e) {
			at, _ := s.find(e.ID(), spread(e.ID()))
			s.entries[at] = *e
			if s.notes != nil {
				s.notes[at] = old.notes[i]
			}
			s.n++
		}
	}
	old.free()
}

// free gives the table back.
func (s *shard) free() {
	release(s.mapped)
	release(s.mappedNotes)
	noted := s.notes != nil
	if *s = (shard{}); noted {
		s.notes = []uint64{}
	}
}

// Close gives the memory of all rows back and leaves the set empty.
func (s *Set) Close() { s.keep(func(*entry) bool { return false }) }

// Remove forgets id.
func (s *Set) Remove(id int64) {
	h := spread(id)
	sh := s.shard(h)
	if at, found := sh.find(id, h); found {
		sh.removeAt(at)
		s.n--
	}
}

// removeAt empties a place and closes the gap: an entry behind it moves into it if a search would reach that
// entry only across the gap.
func (s *shard) removeAt(hole int) {
	s.n--
	for at := hole; ; {
		if at++; at == len(s.entries) {
			at = 0
		}
		e := &s.entries[at]
		if !e.used() {
			break
		}
		if home := s.home(spread(e.ID())); !between(hole, home, at) {
			s.entries[hole] = *e
			if s.notes != nil {
				s.notes[hole] = s.notes[at]
			}
			hole = at
		}
	}
	s.entries[hole] = entry{}
}

// between reports whether home lies after hole and at or before at, going round.
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
	s.keep(func(e *entry) bool { return e.Version().Millis >= limit })
}

// DropMarked forgets the rows with a mark.
func (s *Set) DropMarked() { s.keep(func(e *entry) bool { return e[4]&markBit == 0 }) }

// keep forgets the rows that wanted is false for, and gives their room back. A small table keeps its room:
// the next rows would ask for it again.
func (s *Set) keep(wanted func(*entry) bool) {
	s.n, s.bytes = 0, 0
	for i := range s.shards {
		sh := &s.shards[i]
		live := 0
		for j := range sh.entries {
			if e := &sh.entries[j]; e.used() && wanted(e) {
				live++
			}
		}
		switch {
		case live == 0 && len(sh.entries) < 2*shardSmall:
			clear(sh.entries)
			sh.n = 0
		case live == 0:
			sh.free()
		case live < sh.n:
			sh.rehash(min(max(shardMinimum, live*16/15+live/16+2), len(sh.entries)), wanted) // never past the cap
		}
		s.n += sh.n
		s.bytes += len(sh.entries) * s.width()
	}
}

// Unmark takes the mark off all rows.
func (s *Set) Unmark() {
	for e := range s.all() {
		e[4] &^= markBit
	}
}

// All yields every row, in no order. The set must not change meanwhile.
func (s *Set) All() iter.Seq2[int64, Version] {
	return func(yield func(int64, Version) bool) {
		for e := range s.all() {
			if !yield(e.ID(), e.Version()) {
				return
			}
		}
	}
}

func (s *Set) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range s.shards {
			for j := range s.shards[i].entries {
				if e := &s.shards[i].entries[j]; e.used() && !yield(e) {
					return
				}
			}
		}
	}
}
