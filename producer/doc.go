// Package producer is everything that storestream does in Kafka: the topics, the transactions that write them, the watermarks and requests
// that are kept in them, and who owns which resource. It knows nothing of sources.
//
// # One transaction
//
// A batch's rows, its dead letters and the watermark that speaks of them are one transaction (Session.Commit), so there is no moment when
// one is there and another is not. A crash between publishing and noting progress, which loses rows or sends them twice elsewhere,
// cannot happen: there is no between.
//
// # One owner
//
// Who polls a resource is decided by the consumer group protocol (Join), but a group decides late: an owner that was paused
// still believes what it believed. So the thing that is exclusive is the transactional id, one for each data topic. Take claims it, in an order in
// which every step needs the one before it:
//
//  1. Ask for the id's producer id. The broker ends the predecessor's open transaction and refuses it from now on. Creating a client
//     alone does neither. Whatever was read from a source before this moment is thrown away: an owner that slept between reading and
//     writing would otherwise send an old row under a new epoch.
//  2. Only then note where the watermark topic ends, and read to there. Noted earlier, the predecessor could still commit behind the note.
//  3. Rebuild what was published from the data topic (Session.Rebuild), read the dead letters and the requests.
//  4. Only then read the source.
//
// A commit whose outcome is unknown, or a producer id that is refused, ends the session (ErrLost): what is true is then read again, by
// the same four steps. Before that the caller asks the group whether it is still a member (Group.Confirm): a zombie would otherwise
// fence its successor.
package producer
