package schemas

// Record is one row as it is published. It has everything that the parts above a source need.
type Record struct {
	ID int64
	// UpdatedAt is the row's updated_at at the full precision of its source.
	UpdatedAt Instant
	// Value is HeaderSize bytes of room for the schema id, then the Avro body. The producer writes the id
	// (SetSchemaID) just before it sends the record. Sources do not know the registry.
	Value []byte
}

// arenaChunk is the memory in bytes that the arena allocates at a time, for some ten thousand rows.
const arenaChunk = 1 << 20

// arena provides the memory of encoded rows, a chunk at a time, so that a row costs no allocation. It never
// writes to a full chunk again, and the chunk lives as long as one Record in it. So copy a Record that you
// keep for long: otherwise it keeps 1 MiB.
type arena struct{ buf []byte }

// room returns the chunk to append at most n bytes to.
func (a *arena) room(n int) []byte {
	if cap(a.buf)-len(a.buf) < n {
		a.buf = make([]byte, 0, max(arenaChunk, n))
	}
	return a.buf
}

// take keeps the bytes that were appended to the chunk since room returned it, and returns them. An append to
// the result copies them, and does not write into the next row.
func (a *arena) take(b []byte) []byte {
	start := len(a.buf)
	a.buf = b
	return b[start:len(b):len(b)]
}
