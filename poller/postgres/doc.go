// Package postgres is a poller.Source over a read-only PostgreSQL role behind a transaction pooler.
//
// A row's updated_at is stamped when its transaction starts or writes, and others see the row when the
// transaction commits. A reader that goes by the largest updated_at it has met never sees a row that
// commits later with an earlier stamp. This package says when a range of time can no longer bring such a
// row: when it settles.
//
// # Terms
//
//   - A chunk is what one short snapshot transaction read of the next rows by key. Where rows turn out
//     wider than expected, one transaction hands over several.
//   - A snapshot is xmin:xmax:running. Transactions with an id below xmin are over, those in running and
//     from xmax on are not, the others are over. (The hidden column xmin of a row is another thing: the id
//     of the transaction, or savepoint, that wrote it.)
//   - A horizon is a moment of the server: (its clock, the next transaction id).
//   - overlap is the longest time from a stamp to the first write of its transaction: the one assumption.
//
// # Settling
//
//	server's clock   :00        :10        :20        :30        :40
//	transaction 7    stamp  first write ..............commit
//	                 |<--->|  no longer than overlap
//	horizons              H1 (:05, next 7)  H2 (:21, next 8)
//	pass A                                  xmin 7: only H1 counts
//	pass B                                                   xmin 8: H2 counts too
//
// A pass looks at the clock first, and reads then. What it read settles by this argument, with H a horizon
// that was noted before:
//
//   - A transaction with an id of H.next or more had not written anything at H.time. Its first write comes
//     within overlap of its stamp, so its rows carry H.time - overlap or later. So do those of its
//     savepoints, whatever their ids are.
//   - A transaction with an id less than H.next is over, and its rows are visible, if the xmin of the
//     pass's clock is H.next or more.
//
// So in a range that such a pass has read nothing before H.time - overlap can appear any more. Above, pass
// A saw nothing of transaction 7, so it settles by H1. H2 settles only what was read like pass B. That is
// the rule of horizons (horizon.go); clock.go says where the clock and the ids come from.
//
// All of that is said of rows that this server's transactions write. A foreign table has its rows from
// another server, whose open transactions no snapshot here lists; a materialized view gets rows at a REFRESH,
// stamped long before. So what the table leads to is looked through, its partitions, children and views, at
// the beginning of each pass, and with such a relation among it the resource is held (elsewhereSQL). So it is
// if a view or policy goes by a setting that the role has no value for, because then a session that another
// client has used shows other rows. What functions read nobody can look through.
//
// # A clock that is set
//
// "At H.time or later" and "within overlap" are said of a clock that runs. When somebody sets it, both fail,
// and settled may have passed what is yet to be stamped:
//
//	server's clock   :00        :10        :20 | :00        :10
//	settled               :08 (by H at :10)    |
//	transaction 9                              |   stamp :02, below settled
//
// So a Source compares what has passed on the server's clock with what has passed on ours, from the beginning
// of one pass to that of the next and to each chunk (steps.go). Between them the clock went down to c.time
// less what has passed here, at the lowest:
//
//   - Back: no horizon is later than that any more, for settling and for the floor's step 2 alike. If settled
//     is later than that less overlap, it goes back to there (poller.LostError), once: then settled lies
//     behind the new clock too. And a sweep is asked for.
//   - Forward: settled may be late, never too far. But a transaction that stamped before the step may write
//     after it, so for an overlap no horizon is noted.
//   - Up to a second, and two hundredths of what has passed, nothing is made of it (allowedStep). The overlap
//     has to have room for that.
//
// A new owner knows of the clock that it had passed settled by an overlap, and the horizon of a cursor. If it
// has not, it was set back: settled goes back to the clock less overlap, and a sweep finds what was stamped
// still lower. What then nobody notices, and the next scheduled sweep finds:
//
//   - A step back while no owner lived, after which the clock has passed settled by an overlap again.
//   - A step forward less than an overlap before an owner begins.
//   - A step back and one forth between two looks.
//   - On a standby, which shows its primary's commits and not its clock: how low that went, any step forward,
//     and a step that it has not replayed while the primary is read too. A primary that committed nothing for
//     long looks like one whose clock was set back, so there a new owner compares only with what a standby
//     settled.
//   - Rows of a transaction that was open during that sweep, and has stamped below where settled went back
//     to.
//
// Rows that were stamped by a clock that was ahead stay in the future, as others do. Once they are stamped by
// the right one they are older than what was published, and wait for their second look.
//
// # The floor
//
// A pass leaves out what the passes before it have met. They leave a floor: a snapshot S, of which it is
// true that every row version visible in S, stamped From or later, was met by one of them, or is replaced
// by a newer one that S does not show. The next pass, which begins under clock c:
//
//  1. Which rows are visible in c and not in S? Their transaction was not over in S and is over in c. So it
//     is one of S.running that has ended, or has an id of S.xmax or more. With low, the smallest of these
//     (snapshot.low), such a row has xmin >= low: a savepoint's id is larger than its transaction's.
//  2. The transaction's own id is low or more, so by the argument above the row is stamped
//     horizons.reach(low) or later. Nor can it be stamped before settled.
//  3. So the pass reads what is stamped max(settled, reach(low)) or later and has xmin >= low (filter). Then
//     everything visible in c was met, or is replaced by what c does not show. The next floor is what c and
//     S show together: where c is a standby's, which does not list what runs, it tells less than S did.
//  4. It settles by reach(c.xmin): all that was written below c.xmin is visible in c. In the range that it
//     did not read nothing can have appeared, so settled moves across it.
//
// While a transaction stays open, nothing of this grows: S.running names it, and low looks past it. What
// breaks the simpler versions:
//
//   - The floor is S.xmax alone: 7 runs, 8 is over, xmax is 9. 7 commits, and its rows are never looked
//     for.
//   - It is S.xmin alone: nothing is missed, but beside a transaction that is open all day each pass reads
//     what was written all day. (A standby does not list what runs. There it is so.)
//   - Rows of S.running alone are looked for by their ids: 7 opened a savepoint, 12, which no list names,
//     and its row has xmin 12.
//   - The floor is what the last chunk showed: 7 commits between two chunks, and its row lies in the first
//     one.
//   - low's stamps are bounded by the last horizon: 7 began before it, and stamped before it.
//   - The floor of a pass that was cut short and went on is the last clock: 7 commits in between, its row
//     lies in the first part. So it is the first part's xmin (Cursor.Floor).
//   - A pass that cannot end, because poll.memory is full, resumes at its cursor again and again: the first
//     part's xmin lets nothing settle, also when 7 is over, and there is never room. So what 7 wrote into the
//     first part is read before the rest (pass.readAgain).
//   - age() alone compares: it is 32 bits wide. After 2^31 transactions a new row counts as old
//     (maxBehind).
//   - The floor outlives the database: a standby was promoted that lacked the last transactions, and their
//     ids are given out again, below the floor. So the watermark names cluster, database and timeline
//     (identity).
//   - What was read of the lost transactions stays in the topic: the rows are gone, or as they were before
//     with a stamp below settled, and no pass meets them. So whoever finds another history asks for a sweep.
//   - The promotion comes in the middle of a pass, and its ids have passed the old ones when the next chunk
//     looks. So each chunk of a primary says its timeline (lineage).
//   - The primary that was replaced answers still, and shows the lost transactions once more. So a primary of
//     an earlier timeline is one that lags, for as long as lagPatience (lineage, pass.lags).
//   - The floor's From and low are bounded by a horizon of before the clock was set back: see above.
//   - The floor outlives the server: it crashed, and ids that S showed as over, of transactions that were
//     rolled back or not flushed, are given out again. So the identity names when the server started or
//     recovered.
//   - A new owner reads a standby that lacks what was settled: it shows rows as they were before, and what
//     became of them lies below settled. So it waits (pass.lags).
//   - The floor outlives the table: another one was renamed to its name, or a child was attached to it,
//     with rows that nobody has written since. So the identity names the oid and all that the name leads to,
//     and rows of any other relation pass the filter.
//   - The floor outlives updated_at: it was dropped, and added again with a default, which stamps all rows
//     and writes none. So the identity names the column's number.
//   - The table is filled anew (TRUNCATE and a reload, an ALTER TABLE that rewrites it, another one renamed
//     to its name) by a transaction that locks others out, and a chunk waits for it with its snapshot taken:
//     that shows an empty table then. So the lock comes before the snapshot (DB.snapshot). If the role (below
//     a view: the view's owner) may read only some columns of a table, it may not lock it. A sweep finds the
//     rows that were missed.
//   - A column is renamed, or dropped, and what is asked for next is the others: null goes over all that is
//     read again, and a sweep spreads it. So none may go missing that was there (catalogue.accept). Of a
//     column that was dropped and added again between two reads nobody can tell that its nulls are not meant.
//
// Where rows become visible in yet other ways, or their xmin cannot be asked for (a view, a partitioned
// table, row security, a grant on single columns), there is no floor, and nothing to filter by
// (table.noFloor). Only rule 2 holds, on the same assumption as settling: so while a Source lives, a pass
// begins at max(settled, reach(low)), and dedup suppresses what is read again. A new owner begins at
// settled.
//
// What a pass handed over as Final was written below c.xmin, and so lies below all floors to come. (After
// 2^31 transactions it looks newer than it is, and is met once more.)
//
// # No session state
//
// Chunks are read in a REPEATABLE READ READ ONLY transaction in one round trip, with unnamed statements: a
// pooler may give each one another connection to the server, with another client's settings. So a transaction
// sets its own settings (session.go). It also checks that a name still leads to the same table (identity.go).
package postgres
