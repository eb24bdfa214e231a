// Package paging reads a moving, paged set in full, and knows when it has.
//
// # The problem
//
// A service hands out a set of rows in pages: page 3 of the rows updated on a day, a thousand rows a page. It
// promises no order, and while we page, rows leave the set and come to it. When a row leaves from a page that
// we have read, all rows behind it move down a place, and the first row of the next page slips onto a page
// where we no longer look. So a pass that read every page without an error can have missed rows. More passes
// alone prove nothing, because each can miss the same row.
// TestARowThatEveryForwardPassJumpsOverIsFoundByABackwardPass plays such a set.
//
//	forward            page 0     page 1     page 2       backward           page 0     page 1     page 2
//	we read page 0    [a b c]     d e f      g h i        we read page 2      a b c      d e f    [g h i]
//	b leaves           a c d      e f g      h i          b leaves            a c d      e f g      h i
//	we read page 1     a c d     [e f g]     h i          we read page 1      a c d     [e f g]     h i
//	d is missed: it slipped from page 1 to page 0         g is met twice, and nothing was missed
//
// # The model
//
// S(t) is the set at the instant t. It is shrinking (S(t) includes S(u) for t < u: the rows updated on a day
// that is over, which leave when they are updated again) or growing (S(u) includes S(t): the rows updated
// since a day, in which an updated row stays). A row that is in the set from the first answer to the last has
// stayed. A set is whole when every row that stayed was met. We assume of the service:
//
//   - An answer is true of one instant: its rows are those at their places of S(t), and More says whether
//     S(t) has places behind them. The places may be in another order at each request.
//   - These instants follow one another as the requests do, or the service counts the rows of S(t) with each
//     answer (see Replicas).
//   - A row keeps its ID, and no other row has it. (A row without a name has a hash of 64 bits. If two
//     rows had the same one, fewer would be met than there are, and counting would not take the set for
//     whole.)
//   - A row has a day of creation, and keeps it. If a row has shown that it has none, the set is not cut. If
//     the service counts, the parts of a set are compared with its count, which finds such rows too
//     (Machine.noneUndated).
//   - Its counts are exact, unless a person has set that they are estimates (NewReader).
//
// # Claims
//
// One answer. Page 0 without more to follow is S(t), in any order. No other proof is shorter. So a set of
// several pages is cut by the days on which its rows were created (divide) into parts that fit a page. Each
// row is in one part and stays in it, so the set is whole when each part is. This holds although other rows
// come to the set meanwhile.
//
// Counting. Let a shrinking set have had at most n rows at t, and let n different rows have been met at t or
// later. Then it is whole. No row has come since t, so all n rows that were met were in S(t). S(t) has no
// more than n, so these are all of S(t). And each row that stayed is in S(t). The order in which the rows
// came does not matter, nor how often one was met, nor in how many passes. For a growing set the same holds
// of rows met until t, as long as none leaves.
//
// Replicas. Several servers may answer, or a cache that leaves no trace. Then an answer may be true of an
// earlier instant than the answer before it. So a row may have been met that had left before n was said, and
// make up the number in the place of a row that was jumped over. (The last page comes from a server that has
// seen a row leave, and lacks the row that moved up. The page below comes from a server that has not seen it
// leave, and lacks that row too.) But of two sets S(t) and S(u) one includes the other. So if both have n
// rows, they are the same set. If every answer with rows counts n, all answers are of one set, and n
// different rows are that set. So a shrinking set of several pages is taken for whole by its number only if
// each answer counted as many (pass.alike, ledger.alike). If the service does not count, a single pass proves
// nothing (Reader.Count), and repeated passes assume that instants follow one another. A set, or part, of one
// page needs neither.
//
// A growing set includes, at the latest of these instants, all rows that were met by then, and has the
// greatest number that any answer counted. So it is whole when that many rows were met (ledger.count). A pass
// that ends after fewer has met its end too soon (pass.atLeast).
//
// Rows that come after all. A row may come late to a day that is over, or its time is set back into that day.
// It pushes others up, perhaps one of them to a page that was read already. If the late row is met, it makes
// up the number in that row's place. So if passes are repeated, a pass counts only if earlier passes had met
// every row in it: these rows were there before n was said (ledger.shown). The one pass of Reader.Count has
// no earlier one. It is not used for the newest day, and we assume that no row comes to an older day any
// more. A row that comes all the same is late itself. A sweep finds it, and the row in whose place it was
// counted.
//
// The source of n. No page has more rows than were asked for, P. If page k has m > 0 rows and no page follows
// it, then S(t) has at most n = kP + m rows (pass.atMost). This also holds if the service grants fewer rows:
// then the pass does not meet kP + m rows.
//
// The service may grant more or fewer rows at any answer, or on far pages, and meta.page_size need not show
// it. So neither meta.page_size nor the length of pages may stand for P. Suppose that a last page of two rows
// was read while four were granted, and then two pages of two below it. By their length n would be 6, but it
// is 10. If a pass has pages shorter than it asked for, the next one asks for the shortest of them
// (Machine.repeat).
//
// Or the service counts. Then n is its count, if that is the total and not the number of rows on the page (it
// is the total if it was once larger than the number asked for). A count applies to the rows that are read
// after it was given.
//
// So one backward pass can be enough. It begins at the last page, which shows n. If it then meets n different
// rows, and all its answers count n, no page was short, and each row was met (Reader.Count). A forward pass
// proves less. The page that shows n comes last, and a row met before may have left and have made room for
// one that was missed. Passes that fall short of n add up: rows that any of them met since n was last seen to
// change count (ledger).
//
// Doubt. The service's own word that a page is the last proves nothing in these cases.
//
//   - The service counts more rows than have places on this page and the pages below. The pass has seen these
//     places: kP + m, or fewer if pages are short. A service that shows only so many pages, or rows, of any
//     set looks like this too. (If it counts before it reads, a row may have left between the two. The next
//     pass will not find it so again.) The set is cut, because its parts may be short enough. A part that
//     cannot be cut is not whole. If the count is an estimate, a set is in doubt whenever the count is too
//     high, until a person sets store.dialect.count.
//   - The page is full. A service that reads rows, then counts them all, and works More out from that count
//     answers of two instants. If as many rows as follow page k leave between the two, one of them from page
//     k, the answer says that page k is the last. But it shows a row that is gone in place of one that has
//     moved up. So the page is asked for again: the rows of the second answer were read after the first one
//     had said that there are no more than (k+1)P.
//   - The page is not full. If such a service has short pages, the row that has moved up may be on the next
//     page, and this page is no longer the last. So the page with which a backward pass begins is asked for
//     again too. Once a short page has been seen (Reader.short), so is any last page. Without short pages the
//     rows themselves show that no more follow.
//   - The page is full, and the service does not count. It may be the last page that is shown. So the end is
//     looked for with pages of a row less, which have it on a page of a higher number (pass.endsWith). A
//     service may show only so many rows, in pages of any size, and say neither that more follow nor how many
//     there are. It cannot be told from one that has no more.
//   - The answer does not say whether more follow (encoders leave out false). So the page behind it is asked
//     for. If that has rows, more follow. If it is empty or refused, the set has no more than (k+1)P, and the
//     page is asked for again: as above, its rows were read after that was known (pass.look).
//   - The page is refused, though the page before said that more follow. Either rows have left, or the
//     service shows no more pages. So chance and agreement do not count with such an end.
//
// No end. A service may say of every page that more follow: of empty pages, of the last page again, of the
// first page again. Ten such pages in a row are taken for the end of the rows, and from then on two
// (Reader.NoEnd). So rows are published as they are met. Such a set is taken for whole by counting alone,
// with n from an exact total. For a shrinking set the service has to say n before the first row of a backward
// pass. Empty pages prove nothing, because an empty page in the middle looks the same. If the service does
// not count, no set is whole.
//
// Direction. If the relative order holds while we read, a backward pass over a shrinking set misses no row
// that stayed. The place of such a row only goes down. Had the pass missed it, the row would have been below
// the page asked for at one request and above it at the next, whose page is lower: its place would have gone
// up. By the same argument a forward pass over a growing set misses none, and if rows are sorted by
// update, oldest first, so that an updated row leaves its place for the end, a backward one. That an order
// holds cannot be seen, so this proves nothing. It says in which direction n will be met soon.
//
// Agreement. Two passes in a row over a growing set are taken for whole if three things hold. They met the
// same unchanged rows. Neither pass's end is in doubt: otherwise passes that were cut short, by a refused
// page or by an untrue empty answer, would agree too. And either the second pass had as many rows on each
// page as it asked for, or the longest pages of the two have different lengths: near pages of 100 rows and
// far ones of 200 hide the same rows from each pass that asks for 200 or more. Agreement is no proof. It may
// miss a row if rows are deleted meanwhile, or if the order does not hold. Such a row is late and not lost,
// because agreement closes no day: the set is read again, and when its day is over it shrinks.
//
// Chance. If p passes in a row met no row for the first time, then a row that none met was missed by all of
// these. Let a pass miss it with a probability of at most r, independently of the others; then this happens
// to some row with a probability of at most |S| r^p. A set is taken for whole when that is below 1e-9, a
// shrinking one only after some passes (steadyPasses). This claim is for a service that does not say n: its
// pages are short and it counts by the page. (r is an estimate: the rate at which passes missed the rows that
// they did miss, and no less than a tenth. See ledger.hidden.)
//
// # Failures
//
// A question may get no good answer: a row that the service cannot give, pages that are too heavy for it, a
// page that it refuses for its number (Answer.Failed). A reading goes on behind it.
//
//	the page fails, and no question for one row of it is answered
//	    page 0                 this part is not read
//	    another                the service shows no more pages: like one that is refused (Beyond)
//	the page fails, and smaller pages of its places are asked for, a tenth each time, down to single rows
//	    all are answered       the page was too heavy: the page size goes down, and the part is read again
//	    a row fails alone      it is stepped over (pass.lacks): the pass goes on behind it. Behind mostLost
//	                           of them small pages are stepped over instead
//
// If a place was stepped over, no claim makes the set whole. Each claim is about rows that stayed, and the
// row at that place may have stayed. A count would not show it: a row may come late, or be deleted after it
// was met, and make up for the one that was not. So a pass that lacks a place is not sound, and is not
// repeated. It may still be cut: each part is a set of its own with answers of its own, so the parts show
// whether they are whole, and the one with the row is not. A row without a day of creation is in no part, and
// one that cannot be read may have none. So if single rows were stepped over and all parts are whole, the
// service's counts have to show that no row lacks a day. If it does not count, the set is read without
// cutting it. A failed question for a count, or for the end of a set, is a doubt.
//
// The place of a row depends on how many rows a page has. If the service grants fewer than were asked for,
// the smaller pages may be of other places. Then the part is read again with that size. So a mistake costs
// requests, and leaves rows unread only in a set that is not called whole.
//
// The page size changes only when a reading begins or a part is read again, so a pass has one size. One part
// is read again only with a smaller size, so a reading ends.
//
// # Needs of each claim, and its risk
//
//	claim               needs                                      fails when
//	one answer          a set, or parts, of one page               two empty answers in a row are both untrue;
//	                                                               page 0 is the first that is short, and was
//	                                                               read before it was counted
//	cutting             a day of creation in every row             one has none, was missed, not counted
//	counting, by pages  each as long as asked for; answers         the service grants more than was asked for;
//	                    alike, or one after another                replicas, without a count
//	counting, by count  the total of the set                       it is an estimate, and just what was met:
//	                                                               believed late, or where there is no end
//	counting, growing   no deletions                               a row is deleted and one missed: it is late
//	agreement           an order that holds, no deletions; pages   the missed row is late
//	                    as long as asked for, or two sizes
//	chance              passes independent of each other           once in 1e9, if they are
//
// # How a set is read
//
//	Count: one backward pass              n rows met, all answers count n -> whole   else: fewer days, or Read
//	Read:  page 0                         nothing follows, and no doubt -> whole
//	       forward to the end             once, and n met      -> whole
//	                                      parts that fit       -> each part for itself, from the top
//	                                      there is no end      -> whole if n, by the count, were met
//	       passes, until                  shrinking: n met     -> whole
//	                                      growing: two agree   -> whole
//	                                      chance               -> whole
//	       maxPasses                                           -> not whole, and why
//
// # Memory
//
// A pass keeps the ids that it met. A ledger keeps those of all passes, with a few bits for each. Neither
// keeps a row. Both are exact, so no claim rests on a hash. They are sorted lists of ids: 8 bytes a row in a
// pass, 8 in a ledger, and some 50 more for each row that a pass missed or that changed meanwhile: 16 MB for
// a million rows. The caller's own memory of published rows takes more a row, so its bound is met first.
// Behind that stand bounds of this package. Each of them ends the reading with Outcome.Why, and never with a
// set that is taken for whole:
//
//	maxPages   50,000 pages in a pass: 50 million rows of one day, some 800 MB here
//	maxParts   20,000 parts of a set
//	maxPasses  60 passes over a part
//	fewPasses  3 in a row whose last page is contradicted
//
// The package sends nothing. A Machine says which page to ask for next and takes the facts of the answer. So
// the model tests give it any interleaving of answers and changes.
package paging
