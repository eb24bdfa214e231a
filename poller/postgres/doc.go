// Package postgres is a poller.Source over a read-only PostgreSQL role behind a transaction pooler.
//
// A row's updated_at is stamped when its transaction starts or writes, and others see the row when the
// transaction commits. A reader that goes by the largest updated_at it has met never sees a row that commits
// later with an earlier stamp. This package says when a range of time can no longer bring such a row: when
// it settles.
//
// # Terms
//
//   - A chunk is what one short snapshot transaction read of the next rows by key. Where rows turn out wider
//     than expected, one transaction hands over several.
//   - xmin, of a snapshot: all transactions with a smaller id are over, and the snapshot shows what they
//     committed. (The hidden column xmin of a row is another thing: the id of the transaction that wrote it.)
//   - A horizon is a moment of the server: (its clock, the next transaction id).
//   - overlap is the longest time from a stamp to the first write of its transaction: the one assumption.
//
// # Settling
//
//	server's clock   :00        :10        :20        :30        :40
//	transaction 7    stamp  first write ..............commit
//	                 |<--->|  no longer than overlap
//	horizons              H1 (:05, next 7)  H2 (:21, next 8)
//	chunk A                                 xmin 7: only H1 counts
//	chunk B                                                  xmin 8: H2 counts too
//
// Each chunk notes a horizon H. What was read settles by this argument:
//
//   - A transaction with an id of H.next or more had not written anything at H.time. Its first write comes
//     within overlap of its stamp, so its rows carry H.time - overlap or later.
//   - A transaction with an id less than H.next is over, and its rows are visible, in every snapshot whose
//     xmin is H.next or more.
//
// So once every chunk of a contiguous range was read under such snapshots, nothing before H.time - overlap
// can appear in that range any more. Above, chunk A saw nothing of transaction 7, so a range with A in it
// settles by H1. H2 settles only what was read like chunk B. That is the rule of horizons (horizon.go).
// clock.go says where the clock and the ids come from, completepass.go reads such a range from settled to the
// end.
//
// # The frontier
//
// While a transaction stays open, xmin and settled stand still, and every complete pass reads more that is
// old. So when a complete pass was held back, cheap passes follow (cheappasses.go). They begin at the
// frontier (frontier.go): the earliest stamp of a row that can have become visible since the read before. A
// rowFilter (query.go) lets the server leave out what was met before, by the id in a row's own xmin. Cheap
// passes settle nothing. Once the horizons let settled move, a complete pass follows, and drops the frontier.
//
// # No session state
//
// Chunks are read in a REPEATABLE READ READ ONLY transaction in one round trip, with unnamed statements: a
// pooler may give each one another connection to the server.
package postgres
