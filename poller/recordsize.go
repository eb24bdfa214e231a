package poller

import (
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// TooLarge returns a function that reports whether a row takes more than Session.MaxRecordBytes.
func TooLarge(maxRecordBytes int) func(*schemas.Record) bool {
	return func(row *schemas.Record) bool { return watermark.RowOverhead+len(row.Value) > maxRecordBytes }
}
