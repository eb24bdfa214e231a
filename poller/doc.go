// Package poller turns repeated reads of one resource into a stream of upserts. It misses no row, publishes
// no stale state, and publishes no version twice.
//
// A Poller decides when to read, from where, which rows are new, and when the watermark may move. It knows
// neither Kafka nor HTTP nor SQL: a Source reads, and a Session writes transactions.
//
// A polled table shows the latest state of each row and nothing else, and a row may become visible later than
// its updated_at says. So reads overlap:
//
//	               settled                     now
//	---------------|---------------------------|-----------> updated_at
//	published, and | every pass reads this;    | future rows: a clock
//	nothing can    | dedup knows the versions  | ahead of ours wrote
//	appear here    | that were published       | them
//
// A pass begins at settled and may read rows again. For each row it has one of these outcomes:
//
//	row                                      outcome                                      decided in
//	new: dedup does not know it              published                                    state.decideRow
//	later than the topic's version           published                                    state.decideRow
//	equal to the published version           suppressed as a repeat                       state.decideRow
//	an older updated_at                      deferred for a second look: either may be    state.mayBeOlder
//	other content at the same updated_at       the newer one; if the source catches up,   deferred
//	                                           the latter is published
//	such a row, the same an overlap later    published                                    deferred.note
//	before settled, or before the start      suppressed: dedup knows nothing from there   state.decideRow
//	cannot be published, or is too large     dead letter, unless the topic has it         deadLetters.write
//	can be published again                   its dead letter is taken out                 state.heal
//	the source has it, the topic does not    published by a sweep                         repair
//	deleted: the source no longer shows it   reported or deleted by a sweep               repair
//
// The way of a row is one loop, Poller.publish:
//
//	read      reads the source, one batch ahead of the loop
//	state     decides about the batch (decide), and moves the watermark (advance)
//	writer    commits rows, dead letters and watermark in one transaction
//
// The three become visible together. So the topic always has all that the poller remembers, and a successor
// rebuilds its memory from there.
//
// state runs ahead of the topic by the transaction in hand. A failed commit ends the poller: Run returns, the
// state is dropped, and a new Poller begins with a takeover.
//
// sweeper compares the whole topic with the whole source beside the polls, and repair writes the differences.
// It also deletes single rows on request (erase). All of them write through state and writer, in the poller's
// goroutine. board is the status that people may see.
//
// Clocks step, ours too. A duration is measured by a clock that does not (Moment.Now). A time of the wall
// clock that lies in the future was noted while that clock was ahead, and is not believed: as_of, the time of
// the last sweep, the pause after a sweep that died.
package poller
