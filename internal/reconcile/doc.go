// Package reconcile is the engine that compares a topic with its source while rows go on changing in both,
// and says which of the differences count.
//
//	First        reads both sides once. Rows that differ are suspects. Most of them are only under way: they
//	             changed while both sides were read.
//	  |          (the pipeline gets some time)
//	Look         reads the topic on, then looks the suspects up in the source. A suspect is cleared if the
//	             topic's newest record is a version that the source showed in any reading: the pipeline
//	             delivered it.
//	  |          (an overlap goes by)
//	Look         again. A difference counts once two looks, an overlap apart, have shown it (Confirmation). If
//	             the source catches up, one look is enough for a row that it shows.
//	Differences  returns the rest.
//
// The callers compare different rows, and act differently upon the differences that count:
//
//	verify   all rows        reports them
//	row      one row         reports it, with more detail
//	a sweep  all rows        repairs them
//	an erase named rows      deletes those that the source does not have
//	a replay some rows       publishes them again
//
// A record that another program put into the topic is never a version that the source showed, however new it
// claims to be. So it is found.
//
// # Rows that the source does not show
//
// A row is Extra only if no read has shown it since the comparison began. If one read shows a row and another
// does not, the row is Unknown: it may have been deleted in between, or the other read asked a question that
// does not show it. Such a row is neither equal nor deleted. This includes a row that the first reading did
// not show, although the topic has had it for an overlap. So a row that is to be deleted was absent from a
// full reading, and from two looks that read all rows by another dimension, an overlap apart, and the
// caller's other reads did not show it meanwhile either (See). The first reading confirms no difference,
// because it takes long and the caller's reads are not watched yet.
//
// # Dead letters
//
// A row that cannot be published has to have a dead letter, and every other row must not have one. So the
// comparison includes the dead letters, if the caller has them (Config.Letters).
//
// # Notes and parts
//
// Config.Memory bounds the memory of a comparison, however many rows there are. First notes the id, time and
// hash of each record of the topic and of each row of the source. The notes are sorted by id, in memory or in
// a file (package rowset, Sorter). Then First goes through them once, by id. So the order in which the two
// sides have their rows does not matter.
//
// Both sides are read at the same time. The topic is read up to its ends, which are noted before its first
// record comes, and the source from that moment on. So the notes of the topic are its state of one moment,
// however long it is read, and the pipeline had each of its rows from the source before. The result is the
// same as if the source were read after the topic. If the source were read before the ends are noted, a row
// that both sides got meanwhile might be in the notes of the topic alone.
//
// The notes do not have the rows themselves. A look reads those that differ.
//
// A comparison is of one part of the table: the ids from Config.From on. It ends below the highest id if more
// rows differ than may be suspects. The part behind it goes on with the same notes (Config.Before). So each
// side is read once. Rows that changed since then differ, and the looks clear them. After a crash there are
// no notes. So the next owner reads both sides again, and passes over the ids before Config.From.
//
// # Replays
//
// For a replay (Config.Again) a row differs if its newest record in the topic lies before the end offsets
// that the request for the replay met, and if it is among the wanted rows. First reads the topic alone. All
// other rows count as deleted there. A look shows which of the rows the source has as the topic has them
// (Replayed). Such a difference counts at once, because the version to be published is the one that the topic
// has. A row is cleared as soon as the topic has a later record of it.
//
// Comparing changes nothing.
package reconcile
