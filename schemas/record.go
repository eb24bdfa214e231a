package schemas

// Record is one row as it is published, and all of it that anything above a source needs to know.
type Record struct {
	ID int64
	// UpdatedAt is the row's updated_at at the full precision of its source.
	UpdatedAt Instant
	// Value is HeaderSize bytes of room for the schema id, then the Avro body. The producer writes the id there
	// (SetSchemaID) just before it sends the record: sources know nothing of the registry.
	Value []byte
}

// arenaChunk is how much memory the arena takes at a time, in bytes: enough for some ten thousand rows.
const arenaChunk = 1 << 20

// arena hands out the memory that encoded rows live in, a chunk at a time, so that a row costs no allocation.
// It never writes to a full chunk again, and the chunk goes when the last Record in it does. So whoever keeps
// one Record for long keeps 1 MiB, and had better copy it.
type arena struct{ buf []byte }

// room returns the chunk to append at most n bytes to.
func (a *arena) room(n int) []byte {
	if cap(a.buf)-len(a.buf) < n {
		a.buf = make([]byte, 0, max(arenaChunk, n))
	}
	return a.buf
}

// take keeps what was appended to the chunk since room returned it, and returns that alone. An append to the
// result copies it instead of running into the next row.
func (a *arena) take(b []byte) []byte {
	start := len(a.buf)
	a.buf = b
	return b[start:len(b):len(b)]
}
