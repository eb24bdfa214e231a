// Package producer is everything that storestream does in Kafka: the topics, the transactions that write
// them, the watermarks and requests that are kept in them, and who owns which resource. It does not know
// sources.
//
// A Cluster is the connection. Everything else is given one:
//
//	Group      which resources this instance owns           group.go, sharing.go, members.go
//	Take       makes it the only one that writes a topic    take.go
//	Session    writes that topic, one transaction a batch   session.go, batch.go
//	Requests   what the command line asks of the owners     requests.go
//	Watch      what people and metrics are shown            watch.go
//	Rehearse   what Take would find                         rehearsal.go
//
// They stand on four things: the topics that there must be (topics.go), the brokers' answers about a topic
// (metadata.go), the two ways to read one, and the signs that a log is another one than before (logend.go).
// To fold a topic (fold.go) is to read it from given offsets to ends that were noted before. To follow one
// (follower.go) is to fold the records since the last look. Watermarks, dead letters and requests are in one
// partition of their topics (state.go).
//
// # One transaction
//
// A batch's rows, its dead letters and the watermark that covers them are one transaction (Session.Commit).
// So there is no moment when one of them is there and another is not. Elsewhere a crash between publishing
// and noting the progress loses rows or sends them twice.
//
// # One owner
//
// The consumer group decides who polls a resource (Group). But a group decides late: an owner that was
// paused still believes that it owns a resource that its successor owns by now. So the exclusive thing is a
// transactional id, one for each data topic. A takeover claims it, in an order in which every step needs
// the one before it:
//
//  1. Confirm with the group that this instance is still a member (Group.Confirm). Otherwise a zombie would
//     fence its own successor.
//  2. Look, without disturbing other instances: are the topics and their settings as they must be, does the
//     registry answer, are the keys in the topic ours, does another deployment write it? An instance that
//     could not poll does not stop one that can.
//  3. Fence: ask for the id's producer id. The broker aborts the predecessor's open transaction and refuses
//     it from now on. Creating a client alone does neither. Rows that were read from a source before this
//     moment must not be published: an owner that slept between reading and writing would send an old row
//     under a new epoch.
//  4. End hanging transactions: those that are open in our partitions although no coordinator has them
//     (hanging.go).
//  5. Only now note where the watermark topic ends, and read up to there. If the end were noted earlier, the
//     predecessor could still commit behind it. If the data topic is another one than the watermark names,
//     or its log lost its end, everything is published from the start (logend.go). Read the dead letters and
//     the requests (Requests.CatchUp).
//  6. Read the published rows back from the data topic (Session.Rebuild).
//  7. Only now read the source.
//
// Take is steps 2 to 5, but for the requests, which the owner reads. A commit with an unknown outcome, or a
// producer id that the broker refuses, ends the session (ErrLost). The same seven steps then find out what
// was committed.
//
// # State that a successor finds
//
//	the owner died          the successor finds
//	before step 3           the predecessor still at work, or as it died
//	after step 3            the predecessor's last committed watermark; its open transaction is aborted
//	within step 4           perhaps an open transaction with one empty record. The coordinator knows it, so
//	                        fencing aborts it, and its markers end the hanging records too
//	after steps 4 to 7      the same watermark: no consumer sees what step 4 writes
//	while writing a batch   an open transaction: fencing aborts it. The watermark has not moved, so the rows
//	                        are read again
//	while committing        the new watermark if the coordinator has noted the commit, whether or not the owner
//	                        heard so: fencing waits until it is carried out. Else an open transaction, as above
package producer
