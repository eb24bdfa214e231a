// Package schemas says what a row is. It is the bottom of storestream: it imports nothing of it.
//
// The .avsc files in avsc are the only place where a resource's fields are listed. Everything else that knows
// fields is derived from them: the columns to select, both decoders, the Avro encoding, the list of personal
// fields, and what the registry gets. To add a resource, add its .avsc and its line in resource.go.
//
//	PostgreSQL binary   -> ColumnDecoder --+
//	                                       +--> Record (id, updated_at, Avro bytes),
//	JSON of the service -> RowParser ------+    or a Reject that says why not
//
//	Avro of any writer's schema -> ValueReader -> Value (id, times, hash, JSON)
//
// The goroutine that reads a row turns it into Avro bytes, and bytes it stays from there on. Equal bytes are
// equal rows: dedup, sweeps and verify all compare that way. So a row must encode to the same bytes from
// either source, and every conversion here is exact or ends in a Reject. Nothing is rounded, cut or guessed.
// Money that passes through a float, or through an encoder that floors, loses a cent.
//
// The encoding is written out here, because every row pays for it, and because an Avro long is the varint of
// encoding/binary. Schemas are parsed by github.com/twmb/avro.
package schemas
