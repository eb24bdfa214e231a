// Package schemas is the bottom of storestream: what a row is. The .avsc files in avsc are the only place where a resource's fields
// are listed; the SQL column list, the JSON row parser, the Postgres row decoder, the Avro encoding, the list of personal fields
// and what the registry is told are all derived from them.
//
// A row becomes Avro bytes in the goroutine that read it and stays bytes from there on: equal bytes are equal rows, which is
// what `seen`, sweeps and verify compare. So the same row must encode to the same bytes from either source, and every
// conversion here is exact or it is a Reject: nothing is rounded, cut or guessed (K23).
//
// Encoding is written out here, because it is what every row pays for and because Avro's primitives are the standard library's:
// an Avro long is encoding/binary's varint. Schemas are parsed and compared by github.com/twmb/avro.
package schemas
