// Package poller turns repeated reads of one resource into a stream of upserts in which nothing is lost,
// stale or sent twice.
//
// A Poller owns time: when to read, from where, what is new, and when the watermark may move. It knows
// neither Kafka nor HTTP nor SQL: a Source reads, and a function writes one transaction.
//
// A polled table shows the latest state of each row and nothing else, and a row may become visible later than
// its updated_at says. So reads overlap:
//
//	               settled                     now
//	---------------|---------------------------|-----------> updated_at
//	published, and | what every pass reads;    | future rows: a clock
//	nothing can    | dedup knows what was      | ahead of ours wrote
//	appear here    | published of it           | them
//
// A pass begins at settled and may meet rows again. What becomes of a row:
//
//	row                                      outcome                                      where
//	new: dedup does not know it              published                                    publisher.decide
//	later than what is in the topic          published                                    publisher.decide
//	equal to what was published              suppressed as a repeat                       publisher.decide
//	an older updated_at, or other content    held back for a second look: either may be   publisher.mayBeOlder
//	  at the same one (not where the source    the newer one                              heldBack
//	  catches up: that is published)
//	such a row, the same an overlap later    published                                    heldBack.confirmed
//	before settled, or before the start      suppressed: dedup knows nothing from there   publisher.publish
//	cannot be published, or is too large     dead letter, unless it is there already      deadLetters.write
//	can be published again                   its dead letter is taken out                 deadLetters.takeOut
//	the source has it, the topic does not    published by a sweep                         repair
//	deleted: the source no longer shows it   reported or deleted by a sweep               repair.deleteRows
//
// The rows, the dead letters and the watermark that says so become visible in one transaction. So what the
// poller remembers never differs from what the topic says, and a successor rebuilds it from there.
//
// Poller is the loop. reader reads the source. publisher decides about rows and owns the watermark, with
// dedup, heldBack and deadLetters. sweeper compares the whole topic with the whole source beside the polls;
// repair writes what it found. board is what people may see.
//
// Clocks step, ours too. What lasts for a while is measured by a clock that does not (Config.Now). A time
// of the clock on the wall that lies in the future was noted while it was ahead, and is not believed:
// as_of, the time of the last sweep, the pause after one that died.
//
// All of them live from one takeover to the next. When a write fails, Run returns, what was remembered is
// thrown away, and a new Poller begins with a takeover. That is why a publisher may change what it remembers
// before the commit.
package poller
