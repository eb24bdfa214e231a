// Package schemas defines rows. It is the bottom of storestream and imports no other part of it.
//
// The .avsc files in avsc are the only place that lists a resource's fields. Everything else that knows
// fields is derived from them: the columns to select, both decoders, the Avro encoding, the list of personal
// fields, and the registry's text. To add a resource, add its .avsc and its line in resource.go.
//
// Each kind of field (integers, timestamps, decimals, doubles, strings) has a codec, in a file of its own.
//
//	PostgreSQL binary   -> ColumnDecoder --+
//	                                       +--> Record (id, updated_at, Avro bytes) or Reject
//	JSON of the service -> RowParser ------+
//
//	Avro, also of older schemas -> ValueReader -> Value (id, times, hash, JSON)
//
// The goroutine that reads a row turns it into Avro bytes. From there on the row stays bytes. Equal bytes are
// equal rows: dedup, sweeps and verify all compare bytes. So a row must encode to the same bytes from either
// source. Every conversion here is exact or ends in a Reject; it never rounds, cuts or guesses. Money that
// passes through a float, or through an encoder that floors, loses a cent.
//
// This package encodes and reads Avro itself, because every row pays for it, and because an Avro long is the
// varint of encoding/binary. github.com/twmb/avro parses schemas. A ValueReader reads the types that a schema
// file may have, so it reads each schema that storestream can have registered.
package schemas
