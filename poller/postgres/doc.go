// Package postgres is a poller.Source over a read-only PostgreSQL role behind a transaction pooler.
//
// The hard part is that a row's updated_at is stamped when its transaction starts or writes, and seen when it commits: a reader that goes
// by the largest updated_at it has met never sees a row that commits later with an earlier stamp (K1). So every read notes a mark,
// P = (the server's clock, the next transaction id), and what was read settles by this argument:
//
//   - A transaction whose id is P.next or more had not written anything when P was noted. By the one assumption that is made (a
//     transaction's first write comes within overlap of the time it stamps) its rows carry P.time - overlap or later.
//   - A transaction whose id is less than P.next is over, and its rows are visible, in every snapshot whose xmin is P.next or more.
//
// So once every chunk of a contiguous range was read under such snapshots, nothing before P.time - overlap can appear in that range
// any more. settle.go holds that rule, running.go what follows from it for reads that do not go back to settled, clock.go where clock and ids come from.
//
// Everything works without session state: a chunk is one short REPEATABLE READ READ ONLY transaction in one round trip, with unnamed
// statements, so that a pooler may give each one another server connection (K20).
package postgres
