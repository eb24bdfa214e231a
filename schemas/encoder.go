package schemas

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
)

// encoder is the part that the readers of rows from both sources have in common. It belongs to one goroutine.
type encoder struct {
	res *Resource
	// chunk is the memory of encoded rows, so that a row costs no allocation. A row is appended to it, and it
	// lives as long as one Record in it. So copy a Record that you keep for long: otherwise it keeps 1 MiB. A
	// Record's value ends at its capacity, so that an append to it does not write into the next row.
	chunk []byte
	macs  []hash.Hash // by field: HMAC-SHA-256 under its key, or nil before the first hash
	sum   [sha256.Size]byte
	nulls map[string]int // of isNull, since the last call of Nulls
}

func newEncoder(r *Resource) encoder {
	return encoder{res: r, macs: make([]hash.Hash, len(r.Fields)), nulls: map[string]int{}}
}

// chunkSize is the memory in bytes that an encoder allocates at a time, for some ten thousand rows.
const chunkSize = 1 << 20

// reserve makes room in the chunk for a row whose values take size bytes in its source. Beside these a
// record has a header, and for each field the branch of its union and a hash. Numbers and times take less
// than a hash. It never writes to a full chunk again.
func (e *encoder) reserve(size int) {
	size += HeaderSize + (1+hashSize)*len(e.res.Fields)
	if cap(e.chunk)-len(e.chunk) < size {
		e.chunk = make([]byte, 0, max(chunkSize, size))
	}
}

// hash returns the HMAC of text under the key of field i. It is valid until the next call.
func (e *encoder) hash(i int, text []byte) []byte {
	mac := e.macs[i]
	if mac == nil {
		mac = hmac.New(sha256.New, e.res.Fields[i].key[:])
		e.macs[i] = mac
	}
	mac.Reset()
	_, _ = mac.Write(text) // never fails
	return mac.Sum(e.sum[:0])
}

// isNull reports whether text, which the codec of field i does not read, is null there, and counts it. nil is
// no text.
func (e *encoder) isNull(i int, text []byte) bool {
	f := &e.res.Fields[i]
	if text == nil || !f.Nullable || !f.codec.null.Match(text) {
		return false
	}
	e.nulls[f.Name]++
	return true
}

// noValue describes text if it would be null in field i if that could be null. It is one of few words, and
// never a value of another field. Otherwise it is "".
func (e *encoder) noValue(i int, text []byte) string {
	if text == nil || !e.res.Fields[i].codec.null.Match(text) {
		return ""
	}
	return fmt.Sprintf("found %q, which is no value", text)
}

// Nulls returns by field how many values were read as null since the last call because they are NaN,
// infinite, false or an empty time.
func (e *encoder) Nulls() map[string]int {
	nulls := maps.Clone(e.nulls)
	clear(e.nulls)
	return nulls
}
