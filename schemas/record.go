package schemas

// Record is one row as it is published. It has everything that the parts above a source need.
type Record struct {
	ID int64
	// UpdatedAt is the row's updated_at at the full precision of its source.
	UpdatedAt Instant
	// Value is HeaderSize bytes of room for the schema id, then the Avro body. The producer writes the id
	// (SetSchemaID) just before it sends the record. Sources do not know the registry.
	Value []byte
	// Text is RowParser.Text of the row. Zero if the source has none.
	Text uint64
}
