// Package postgres is a poller.Source that reads tables with a read-only PostgreSQL role, through a
// transaction pooler or directly.
//
// A transaction stamps a row's updated_at when it starts or writes, and others see the row when the
// transaction commits. A reader that only remembers the largest updated_at misses a row that commits later
// with an earlier stamp. This package finds out when a range of time is settled, that is, when no such row
// can appear in it any more.
//
// # Terms
//
//   - A chunk is a part of the next rows by key, read by one short transaction, which gives one
//     chunk or several.
//   - A snapshot is xmin:xmax:running. Transactions with an id below xmin are over. Those in running, and
//     those from xmax on, are not. All others are over. (The hidden column xmin of a row is the id of the
//     transaction or savepoint that wrote it.)
//   - A horizon is a moment of the server: its clock and the next transaction id.
//   - overlap is the longest time from a stamp to the first write of its transaction. It is the one
//     assumption.
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
// A pass reads the clock first and then the rows. Let H be a horizon from before the pass:
//
//   - A transaction with an id of H.next or more had written nothing at H.time. It writes within overlap of
//     its stamp, so its rows are stamped H.time - overlap or later. The same holds for its savepoints.
//   - A transaction with a smaller id is over, and its rows are visible, if the xmin of the pass's clock is
//     H.next or more.
//
// So no row with a stamp before H.time - overlap can appear any more in a range that such a pass has read.
// Above, pass A does not see transaction 7, so it settles by H1. Only a range that was read like pass B
// settles by H2. horizon.go has this rule. clock.go reads the clock and the ids.
//
// The argument holds for rows that this server's transactions write. A foreign table has rows of another
// server, whose open transactions no snapshot lists. A materialized view gets old rows at a REFRESH. So each
// pass examines the relations that the table leads to (partitions, children, views), and the resource is
// blocked if one of these kinds is among them (elsewhereSQL). It is also blocked if a view or policy uses a
// setting that has no value for the role: a session that another client has used would show other rows. This
// package cannot examine which tables a function reads.
//
// # A clock that is set
//
// "H.time or later" and "within overlap" assume a running clock. If an operator sets it, both fail:
//
//	server's clock   :00        :10        :20 | :00        :10
//	settled               :08 (by H at :10)    |
//	transaction 9                              |   stamp :02, below settled
//
// So a Source compares the time that passes on the server's clock with the time that passes on ours, from the
// beginning of one pass to the beginning of the next and to each chunk (horizon.go). A step back cannot
// have gone lower than the earlier time of the server less the time that passed here.
//
//   - Back: no horizon is later than that any more. If settled is later than that less overlap, it goes back
//     to there once (poller.LostError), and a sweep follows.
//   - Forward: settled may be late, never too far. But a transaction that stamped before the step may write
//     after it, so no horizon is recorded for an overlap.
//   - A step of up to a second, and two hundredths of the time that passed, is ignored (allowedStep). overlap
//     has to have room for it.
//
// A new owner knows that the clock had passed settled by an overlap, and the horizon of a cursor. If the
// clock has not, it was set back: settled goes back to the clock less overlap, and a sweep finds rows with
// lower stamps. Only the next scheduled sweep finds rows that were missed because of:
//
//   - a step back without a living owner, after which the clock has passed settled by an overlap again
//   - a step forward less than an overlap before an owner begins
//   - a step back and a step forward between two readings of the clock
//   - on a standby, which shows its primary's commits and not its clock: the lowest time of a step back,
//     every step forward, and a step that it has not replayed while the primary is read too. There a primary
//     that commits nothing for long looks like one whose clock was set back. So on a standby a new owner
//     compares only with a settled that came from a standby
//   - a transaction that was open during the sweep, and stamped rows below the place that settled went back
//     to
//
// Rows with stamps of a clock that was ahead stay in the future. When they are stamped by the right clock,
// they look older than the published ones, and are deferred.
//
// # The floor
//
// A pass leaves out the rows that earlier passes have met. These leave a floor: a snapshot S and an instant
// From. Every row version that S shows, stamped From or later, was met, or was replaced by a version that S
// does not show. Let the next pass begin under clock c:
//
//  1. A row that c shows and S does not was written by a transaction that is over in c and not in S. It is
//     one of S.running that has ended, or has an id of S.xmax or more. Let low be the smallest of these
//     (snapshot.low). Such a row has xmin >= low, because a savepoint's id is larger than its transaction's.
//  2. The transaction's own id is low or more. So by the argument above the row is stamped
//     horizons.reach(low) or later. It is not stamped before settled either.
//  3. So the pass reads the rows that are stamped max(settled, reach(low)) or later and have xmin >= low
//     (part.low). Afterwards everything that c shows was met, or was replaced by a version that c does not
//     show. The next floor is the union of c and S, because a standby's c does not list running transactions.
//  4. It settles by reach(c.xmin): c shows all writes below c.xmin. In the range that the pass did not read
//     nothing can have appeared, so settled moves across it.
//
// While a transaction stays open, a pass does not read more for it: S.running names it, and low is above it.
// Simpler versions fail:
//
//   - The floor is only S.xmax: 7 runs, 8 is over, xmax is 9. 7 commits, and no pass looks for its rows.
//   - The floor is only S.xmin: each pass beside a transaction that is open all day reads all writes of the
//     day. (A standby does not list running transactions, so there it is like that.)
//   - Only the ids of S.running are looked for: 7 opened savepoint 12, which no list names, and its row has
//     xmin 12.
//   - The floor is the snapshot of the last chunk: 7 commits between two chunks, and its row belongs to the
//     first one.
//   - The last horizon bounds the stamps of low: 7 began before it, and stamped before it.
//   - The floor of a pass that was cut short and continued is the last clock: 7 commits in between, and its
//     row belongs to the first part. So the floor is the first part's xmin (Cursor.Floor).
//   - A pass that cannot end, because poll.memory is full, continues at its cursor again and again. The first
//     part's xmin lets nothing settle, even when 7 is over, and no memory becomes free. So the rows that 7
//     wrote into the first part are read before the rest (pass.resume).
//   - Only age() is compared: it has 32 bits. After 2^31 transactions a new row counts as old (maxBehind).
//   - The floor outlives the database: a standby is promoted that lacks the last transactions, and gives
//     their ids out again, below the floor. So the watermark names cluster, database and timeline
//     (identity.go).
//   - Rows of the lost transactions stay in the topic: in the table they are gone, or have stamps below
//     settled, and no pass meets them. So another history causes a sweep.
//   - A promotion happens during a pass, and its ids have passed the old ones at the next chunk. So each
//     chunk from a primary reports its timeline (lineage).
//   - The replaced primary still answers and shows the lost transactions. So a primary of an earlier timeline
//     counts as one that lags, for as long as lagPatience (lineage, pass.lags).
//   - The floor's From and low come from a horizon of before the clock was set back: see above.
//   - The floor outlives the server: it crashes, and gives out again the ids of transactions that S showed as
//     over, and that were rolled back or not flushed. So the identity has the time of the server's start or
//     recovery.
//   - A new owner reads a standby that lacks settled transactions: it shows old versions, and the new ones
//     lie below settled. So the owner waits (pass.lags).
//   - The floor outlives the table: another table takes its name, or a child is attached, with rows that no
//     transaction has written since. So the identity has the oid and all relations that the name leads to,
//     and rows of any other relation pass the filter.
//   - The floor outlives updated_at: the column is dropped and added again with a default, which stamps all
//     rows and writes none. So the identity has the column's number.
//   - A transaction that locks others out fills the table anew (TRUNCATE and a reload, an ALTER TABLE that
//     rewrites it, another table that takes its name). A chunk that has its snapshot already waits for it and
//     then finds an empty table. So the lock comes before the snapshot (DB.begin). If the role, or below a
//     view its owner, may read only some columns of a table, it may not lock it. A sweep finds the missed
//     rows.
//   - A column is renamed or dropped, and only the other columns are read: null replaces its values in all
//     rows that are read again, and a sweep spreads it. So a column that was there may not go missing
//     (chunkReader.accept). A column that is dropped and added again between two reads cannot be detected.
//
// Some relations make rows visible in other ways, or hide their xmin: a view, a partitioned table, row
// security, a grant on single columns. They have no floor and no filter (table.noFloor). Each pass reads all
// rows from settled on, and dedup suppresses those that are read again.
//
// A row that a pass calls Final was written below c.xmin, and so lies below all later floors. (After 2^31
// transactions it looks newer than it is, and is met once more.)
//
// # A first load
//
// A pass in the order (updated_at, id) jumps from block to block if the rows do not lie in that order on
// disk. So a pass that begins before all rows has two parts (heap.go). The load reads the table's blocks in
// turn, and an ordinary pass reads the rest. Let H be a horizon that counts for the clock of the pass, and
// before be H.time - overlap:
//
//	           before                        now
//	-----------|-----------------------------|---> updated_at
//	the load   | the passes that follow: settled is before when the load has ended
//
// The load publishes the rows stamped earlier than before. It meets each of them once:
//
//  1. By the argument above they were written by transactions below H.next. These are over, and every chunk
//     of the load shows what they wrote. So no such version appears later, in any block.
//  2. A version stays in its block. An UPDATE writes another version, also if it is HOT.
//  3. That version may lie in a block that was read, or after the last one. But it is stamped before or
//     later, so the passes that follow read it. If the load comes to the new version, it leaves it out.
//
// So a row version belongs to the load or to the passes, never to both. No pass reads a row of the load
// again (Batch.Final), and dedup need not remember it. The records of the load have times earlier than
// before, and DedupFrom is before or later as soon as settled is. So a takeover that looks for DedupFrom
// finds the end of the load, although the load's records are in no order of time.
//
// Settled stays at its beginning until the load has ended. The watermark has the load's place (Load). A
// place outlives the owner, a restart of the server and a promotion, for the same reasons as settled, and
// with the same sweep. If the clock was set back below before, the load goes on for the rows below that, and
// the passes read the others again.
//
// It does not outlive the table's file. CLUSTER, VACUUM FULL, TRUNCATE and some ALTER TABLE write another
// one, with the rows in other blocks. So the place names the file (with the cluster, because two clusters may
// give a file the same number). Each chunk compares the file, under its lock. If it is another file, the load
// begins again. The takeover before that reads back the published rows, so no row is published twice. If
// poll.memory has no room for that, the resource is blocked, and the reason names the size that is needed.
//
// Simpler versions fail:
//
//   - The load publishes all rows that it meets: the pass after it meets the latest ones again. dedup would
//     have to remember all rows that are written during the load.
//   - The load asks for its last block before the horizon: a transaction below H.next writes a block behind.
//   - The load begins beside a transaction that is older than H: that one writes an early stamp into a block
//     that was read. So without a horizon that counts, the whole pass is in the order (updated_at, id).
//   - before is later than our clock: records of the load would carry the time of their writing, and a
//     takeover in the middle would have to read back all of them (poller.futureRows).
//   - The rows of a range of blocks are cut into chunks as they come: nothing orders them. The server may
//     begin a sequential scan in the middle of a table, or read with several processes. So a range counts as
//     a whole. If it is more than a chunk, fewer blocks follow, and one block is read in the order
//     (updated_at, id).
//   - The file is compared when the load begins, or before the lock: see TRUNCATE above.
//   - A failure gives up the load: a first load of a day would begin again at each restart of the server.
//
// A load goes on behind a bad chunk, and behind a block whose page is broken. So do the passes that follow,
// or new rows would wait for the bad ones. Then neither the load in the watermark nor settled moves, and no
// row behind is final.
//
// An UPDATE that leaves updated_at alone breaks (3). During a load it may put a row into a block that was
// read, and then only the next sweep finds the row. Or it puts a published row into a block that was not
// read, which publishes the row again.
//
// A table is read in this way if it has a floor, at least leastBlocks blocks, and the server's own storage
// (its access method is heap), and if the role may ask for its size. PostgreSQL 13, or 14 without
// enable_tidscan, would read the whole table for each range of blocks. A replay is read in this way if no row
// lies before its beginning. The same goes for resources.*.start. Rows without updated_at are read after the
// blocks, by id.
//
// # No session state
//
// A chunk is read in a REPEATABLE READ READ ONLY transaction in one round trip, with unnamed statements. A
// pooler may give each transaction another connection to the server, with another client's settings. So a
// transaction sets its own settings (session.go), and checks that a name still leads to the same table
// (identity.go).
//
// # The way of a row
//
// DB.begin sends a transaction. chunkReader.next decodes its rows into a chunk. chunkReader.chunks yields
// chunks, and tries again if a transaction fails. Source.pass reads them, and pass.batch decides what each of
// them settles.
package postgres
