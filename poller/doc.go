// Package poller turns repeated reads of one resource into a stream of upserts in which nothing is lost, stale or sent twice.
//
// A Poller owns time: when to read, from where, what has been seen, and when the watermark may move. It knows neither Kafka nor HTTP
// nor SQL: a Source reads, and a function writes one transaction.
//
// The idea, once. A polled table shows the latest state of each row and nothing else; reads overlap because a row may become visible
// later than its updated_at says. So a read starts at `settled`, the instant before which nothing can appear any more, and `seen`
// knows what was published at or after it. A row is published when seen has no such row, or has another content with the same or an
// older updated_at; it is suppressed when it is equal; it is held back when it is older (see older.go). The rows, the dead letters and
// the watermark that says so become visible in one transaction. What the poller remembers therefore never differs from what the
// topic says, and a successor rebuilds it from there.
//
// A Poller whose write failed is finished: Run returns, what it remembered is thrown away with it, and a new one begins with
// a takeover. That is why it may change what it remembers while it puts a transaction together.
package poller
