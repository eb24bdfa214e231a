package poller

import "github.com/storestream/storestream/schemas"

// recordSize returns how many bytes the record of a row takes at most: its value and key, the fields around
// them, and the 61 bytes of a batch.
func recordSize(row *schemas.Record) int {
	const key, fields, batch = 10, 36, 61
	return len(row.Value) + schemas.HeaderSize + key + fields + batch
}

// TooLarge returns a function that reports whether a row takes more than Session.MaxRecordBytes.
func TooLarge(maxRecordBytes int) func(*schemas.Record) bool {
	return func(row *schemas.Record) bool { return recordSize(row) > maxRecordBytes }
}
