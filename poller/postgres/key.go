package postgres

import (
	"encoding/binary"
	"math"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// epoch is 2000-01-01T00:00:00Z, from which PostgreSQL counts microseconds.
const epoch schemas.Instant = 946684800 * 1e6

// key is a place in the order (updated_at, id): the last row read, or where to begin. at is in PostgreSQL's own microseconds, not an
// Instant: -infinity, infinity and years that RFC 3339 cannot write are places in the order too.
type key struct{ at, id int64 }

// keyAt is the place before every row stamped from or later (an id of the smallest int64 apart). MinInstant is before everything, -infinity included.
func keyAt(from schemas.Instant) key { return key{at: microsOf(from), id: math.MinInt64} }

// microsOf is i as PostgreSQL's microseconds, naive or not: a naive timestamp means UTC here, whatever the session's zone. MinInstant becomes -infinity.
func microsOf(i schemas.Instant) int64 {
	if i <= schemas.MinInstant {
		return math.MinInt64
	}
	return int64(i - epoch)
}

// instantOf is the reverse, held within [MinInstant, MaxInstant].
func instantOf(micros int64) schemas.Instant {
	if micros > int64(schemas.MaxInstant-epoch) {
		return schemas.MaxInstant
	}
	return max(schemas.Instant(micros)+epoch, schemas.MinInstant)
}

// instant is the stamp up to which everything before k has been read, k's own stamp not included.
func (k key) instant() schemas.Instant {
	if k.at < int64(schemas.MinInstant-epoch) {
		return schemas.MinInstant
	}
	return instantOf(k.at)
}

// keyOf is where a pass goes on after a crash. A stamp that no Instant holds was clamped when the cursor was written: such a place is entered
// from its beginning, which repeats rows and skips none.
func keyOf(c *watermark.Cursor) key {
	k := key{at: microsOf(c.UpdatedAt), id: c.ID}
	if c.UpdatedAt <= schemas.MinInstant || c.UpdatedAt >= schemas.MaxInstant {
		k.id = math.MinInt64
	}
	return k
}

// idOf reads an integer of 2, 4 or 8 bytes; false for NULL.
func idOf(v []byte) (int64, bool) {
	switch len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v)), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))), true
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))), true
	}
	return 0, false
}

func int8Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// xidParam is a transaction id as the server's own 32 bits: the epoch is dropped, age() compares modulo 2^32.
func xidParam(id uint64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(id)) }

// int8ArrayParam is an int8[] in binary format.
func int8ArrayParam(ids []int64) []byte {
	b := make([]byte, 0, 20+12*len(ids))
	for _, word := range []uint32{1, 0, oidInt8, uint32(len(ids)), 1} { // dimensions, has nulls, element type, length, lower bound
		b = binary.BigEndian.AppendUint32(b, word)
	}
	for _, id := range ids {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(id))
	}
	return b
}
