package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// ErrLost means that a commit failed, or that its outcome is unknown. Close the session, and go on with a new
// one (Group.Confirm, then Take), which finds out whether the transaction was committed.
var ErrLost = errors.New("the session is lost")

// transactionTimeout is how long the broker lets a transaction stay open. A broker refuses more than its
// transaction.max.timeout.ms (15 minutes by default). Until it ends, a crash here hides newer watermarks of
// other resources. It is a variable for the tests.
var transactionTimeout = time.Minute

// Session is the exclusive right to write one resource's topic, from Take until the first error that is
// ErrLost, or Close. One goroutine uses it.
type Session struct {
	c      *Cluster
	log    *zap.Logger
	id     string // the transactional id
	target target
	cl     *kgo.Client // writes transactions

	// Known to be committed.
	mark        watermark.Watermark
	deadLetters map[string]uint64

	data, letters, marks writtenLog
	looked               time.Time // when the topics, their settings and the registry were last checked

	open bool // a transaction has begun and not ended
	lost bool // also when it is closed
}

// Watermark is the last one that is known to be committed.
func (s *Session) Watermark() watermark.Watermark { return s.mark }

// DeadLetters are those of this resource that the topic holds: key to watermark.DeadLetterHash of the row.
// It is the session's own, and commits keep it up to date.
func (s *Session) DeadLetters() map[string]uint64 { return s.deadLetters }

// MaxRows is the most rows that a transaction should hold. A transaction costs Kafka as much as a thousand
// rows, and each row takes some 300 bytes here and in the client until it is committed. A broker that takes
// 500 rows a second finishes such a transaction within its timeout.
func (s *Session) MaxRows() int { return 20_000 }

// MaxRecordBytes is the largest record of a row (watermark.RecordSize) that the data topic takes.
func (s *Session) MaxRecordBytes() int { return s.target.limits[s.target.topic] }

// EndOffsets are the ends of the data topic's partitions now.
func (s *Session) EndOffsets(ctx context.Context) ([]int64, error) {
	return s.c.offsets(ctx, s.data.name, s.c.admin.ListEndOffsets)
}

// Rebuild calls fold with each record of the data topic, beginning at the watermark's DedupFrom, in offset
// order within a partition. A key stays in one partition. A record's Kafka time is min(updated_at,
// time of writing). So the predecessor's dedup held no record before the first offset of that time, in each
// partition. Records after that offset are given with any time: an old row that was written later may be
// the newest of its id.
//
// It also gives each record at or after the watermark's Ends, as Beyond. There are such records only if the
// watermark topic lost its end (an unclean leader election): then this watermark is older than the last
// published rows, and rows that it does not cover would be published again.
func (s *Session) Rebuild(ctx context.Context, fold func(watermark.Published) error) error {
	if s.mark.DedupFrom == schemas.MaxInstant && s.mark.Ends == nil {
		return nil // dedup is empty
	}
	topic := s.data
	from, err := s.c.offsets(ctx, topic.name, s.c.firstSince(s.mark.DedupFrom))
	if err != nil {
		return err
	}
	spans, err := s.c.spans(ctx, topic.name, s.c.admin.ListStartOffsets, s.c.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	for p := range min(len(from), len(s.mark.Ends)) {
		from[p] = min(from[p], s.mark.Ends[p])
	}
	goOn(spans, from) // not before a log's start: its records may have been deleted, those at Ends too
	beyond := 0
	rows := newRowReader(s.c, s.target, topic.partitions)
	for p, err := range rows.decode(ctx, s.c.fold(ctx, topic.name, spans), nil) {
		if err != nil {
			return err
		}
		if p.Err != nil && !p.Unread { // its reader has logged it
			s.log.Warn("a record that is not ours in the data topic", zap.String("topic", topic.name),
				zap.Int32("partition", p.Partition), zap.Int64("offset", p.Offset), zap.Error(p.Err))
			// To forget a row whose value is not ours is safe: it is published again when it is next read.
			p.Tombstone = true
		}
		if p.Foreign || p.Stray {
			continue // we did not publish it
		}
		if replay := s.mark.Replay; replay != nil && int(p.Partition) < len(replay.Ends) {
			p.Old = p.Offset < replay.Ends[p.Partition]
		}
		if int(p.Partition) < len(s.mark.Ends) && p.Offset >= s.mark.Ends[p.Partition] {
			p.Beyond = true
			beyond++
		}
		if err := fold(p); err != nil {
			return err
		}
	}
	if beyond > 0 {
		s.log.Warn("the data topic holds records that the last watermark does not tell of, which are not "+
			"published again: perhaps the watermark topic lost its end, or another program wrote to the data topic",
			zap.String("topic", topic.name), zap.Int("records", beyond), zap.Stringer("settled", s.mark.Settled))
	}
	return nil
}

// Commit writes tx as one transaction: a read_committed consumer sees all of it or nothing. It sets the
// watermark's Version, Resource, Instance, Group, TopicID, Partitions, Ends and Written, and stamps the
// schema ids into the rows' values. The caller does not touch these until Commit returns.
//
// If it returns nil, the transaction was committed, and Watermark and DeadLetters have changed. After
// ErrLost, close the session and take over again. If ctx ends before the last step, the transaction is
// aborted, and the session may be used again: a sweep is handed over then. The last step cannot be taken
// back: it has a timeout of its own, and ctx does not interrupt it. After every failure of that step the
// outcome is unknown: even a refusal may be the answer to the client's second try, after a first that was
// carried out.
func (s *Session) Commit(ctx context.Context, tx watermark.Transaction) error {
	if s.lost {
		return fmt.Errorf("%w: it has ended", ErrLost)
	}
	if err := s.lookAgain(ctx); err != nil {
		return err
	}
	if err := s.sameTopic(ctx); err != nil {
		return err
	}
	mark := s.stamp(tx.Watermark)
	b := s.fill(tx, &mark)
	if err := s.cl.BeginTransaction(); err != nil {
		return s.lose("beginning a transaction", err)
	}
	s.open = true
	if err := s.write(ctx, b, &mark); err != nil {
		return s.giveUp(ctx, b, err)
	}
	committing, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	s.open = false
	if err := s.cl.EndTransaction(committing, kgo.TryCommit); err != nil {
		return s.lose("committing", err)
	}
	s.mark, s.data.ends, s.letters.ends = mark, b.data, b.letters
	for _, letter := range tx.DeadLetters {
		if letter.Row == nil {
			delete(s.deadLetters, letter.Key)
		} else {
			s.deadLetters[letter.Key] = watermark.DeadLetterHash(letter.Row)
		}
	}
	return nil
}

// sameTopic ends the session if another topic has the data topic's name now. No commit shows this. Brokers
// before 4.0 take records by the topic's name. Later ones refuse them as if the topic were not known yet.
func (s *Session) sameTopic(ctx context.Context) error {
	now, err := s.c.describe(ctx, s.data.name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || differ(topicID(now), s.data.id) {
		return s.lose("looking at topic "+s.data.name, cmp.Or(err, errAnother))
	}
	return nil
}

// lookAgainAfter is the time between two checks of the topics that a session writes.
const lookAgainAfter = time.Minute

// lookAgain checks, once a minute, for problems that no commit shows (changed). If a check fails, it is made
// again at the next look.
func (s *Session) lookAgain(ctx context.Context) error {
	now := s.c.cfg.Now()
	if since := now.Sub(s.looked); since >= 0 && since < lookAgainAfter {
		return nil
	}
	s.looked = now
	if err := s.changed(ctx); s.lost {
		return err
	}
	return nil
}

// changed looks for settings by which a topic would lose data from now on, a log that lost its end or is
// another one, partitions that were added, a transaction that hides committed records, and a registry in
// which the schema ids are others. It then ends the session before the next write. The takeover that follows
// names the problem, or goes on with the topic as it is.
func (s *Session) changed(ctx context.Context) error {
	err := EnsureTopics(ctx, s.c, s.target.resource.Name)
	if Refused(err) {
		return s.lose("looking at the topics again", err)
	}
	if err != nil {
		return err
	}
	var hidden []string
	for _, log := range []*writtenLog{&s.data, &s.letters, &s.marks} {
		now, err := s.c.describe(ctx, log.name)
		if err != nil {
			return err
		}
		stable, err := s.c.offsets(ctx, log.name, s.c.admin.ListCommittedOffsets)
		if err != nil {
			return err
		}
		// A commit ends before its markers are in the log, which log.ends counts.
		ends, err := s.c.endsAgain(ctx, log.name, s.c.admin.ListEndOffsets, log.ends)
		if err != nil {
			return err
		}
		other := shortened(log.ends, ends)
		if log == &s.letters && differ(topicID(now), log.id) {
			other = errAnother.Error()
		} else if len(now.Partitions) != log.partitions {
			other = "its partitions were changed"
		}
		if other != "" {
			return s.lose("looking at topic "+log.name, errors.New(other))
		}
		for p, end := range log.stood {
			if p < len(stable) && stable[p] < end {
				hidden = append(hidden, fmt.Sprintf("partition %d of %s from offset %d on", p, log.name, stable[p]))
			}
		}
		log.stood = ends
		log.id = cmp.Or(log.id, topicID(now)) // a cluster that gains ids
		if log == &s.letters {                // other resources write there as well
			log.ends = slices.Clone(ends)
		}
	}
	if len(hidden) > 0 {
		if err := s.unhide(ctx, hidden); err != nil {
			return err
		}
	}
	if other := otherIDs(ctx, s.c, &s.target); other != nil {
		return s.lose("looking at the registry", other)
	}
	return nil
}

// unhide looks for the reason why consumers do not see records that were in the topics at the last look.
// While a transaction stays open, commits succeed behind it, and no read_committed consumer sees them. If
// the transaction hangs, unhide ends the session, and the takeover ends the transaction or says which
// command does.
func (s *Session) unhide(ctx context.Context, hidden []string) error {
	found, _, err := hanging(ctx, s.c, s.data.name, s.marks.name, s.letters.name)
	if len(found) > 0 {
		return s.lose("checking what consumers see", fmt.Errorf("a transaction of producer id %d hangs and "+
			"hides %s", found[0].ProducerID, strings.Join(hidden, ", ")))
	}
	s.log.Warn("read_committed consumers do not see the commits of a minute ago: a transaction is open",
		zap.Strings("hidden", hidden), zap.Error(err),
		zap.String("do", s.c.Tool("kafka-transactions.sh", "find-hanging", "--topic", s.data.name)))
	return nil
}

var (
	// errBehind means that records got offsets that their log had passed before.
	errBehind = errors.New("it was created anew or lost records: records got offsets that its log " +
		"had passed before")
	// errAnother means that the topic has another id.
	errAnother = errors.New("it was created anew")
)

// aheadAtMost limits how far a previous owner's clock may have been ahead of ours.
const aheadAtMost = time.Hour

// stamp fills in the fields that the producer knows. Written grows from one watermark to the next, even if
// the clock goes back. But if the last Written is far ahead of the clock, stamp starts again from the clock:
// brokers would refuse records with such a time.
func (s *Session) stamp(mark watermark.Watermark) watermark.Watermark {
	mark.Version, mark.Resource = watermark.Version, s.target.resource.Name
	mark.Instance, mark.Group = s.c.cfg.Instance, s.c.cfg.Group
	mark.TopicID = cmp.Or(s.data.id, s.mark.TopicID)
	mark.Partitions = int32(s.data.partitions)
	mark.Written = schemas.InstantOf(s.c.cfg.Now())
	if before := s.mark.Written; before <= mark.Written.Add(aheadAtMost) {
		mark.Written = max(mark.Written, before.Add(time.Millisecond))
	}
	return mark
}

// write sends the batch, and then the watermark, whose Ends are the offsets that the data topic's log has
// reached once the batch is committed.
//
// The watermark comes last. An open transaction in the watermark topic hides the newer watermarks of all
// other resources in its partition from the instances that take them over. So it should not be open while
// thousands of rows are being sent.
func (s *Session) write(ctx context.Context, b *batch, mark *watermark.Watermark) error {
	// Sooner than the broker gives up, so that there is a transaction left to abort.
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout*4/5)
	defer cancel()
	if err := b.send(ctx, s.cl, b.records); err != nil {
		return err
	}
	if b.behind != nil {
		return errBehind
	}
	mark.Ends = slices.Clone(b.data)
	value, err := watermark.Encode(*mark)
	if err != nil {
		return fmt.Errorf("encoding the watermark: %w", err)
	}
	return b.send(ctx, s.cl, []kgo.Record{{Topic: s.c.Watermarks(), Key: []byte(mark.Resource), Value: value,
		Partition: statePartition, Timestamp: recordTime(mark.Written)}})
}

// awaitPartitions waits until EndTransaction will see the records that the client has written to topic.
// Without it a commit can be an abort that returns nil.
//
// When a client writes to a topic for the first time, its metadata loop (franz-go 1.22,
// storePartitionsUpdate) hands the records to the partitions first and publishes the partitions after. If
// the machine is busy, the loop may stand still between the two for as long as a produce request takes.
// Then every promise is kept, Flush returns, and EndTransaction finds no partition that was written. It
// aborts the transaction as an empty one, and returns nil.
//
// If it finds a partition of another topic, it commits, and the client takes the one that it did not find for
// a part of the next transaction as well. Before KIP-890 it does not tell the coordinator of that one again,
// and the next transaction's records in it would hang.
func awaitPartitions(ctx context.Context, cl *kgo.Client, topic string) error {
	for {
		if leader, _, err := cl.PartitionLeader(topic, 0); leader >= 0 || err != nil {
			return nil //nolint:nilerr // an error of the partition's is published with it
		}
		if err := wait.For(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("the client does not show the partitions of topic %s: %w", topic, err)
		}
	}
}

// giveUp loses the session after err. But if ctx ended it aborts b, and the session may be used again. The
// transaction is known to be aborted if the broker confirms it to a producer that it still knows. Only then
// does the client let go of b's records.
//
// If the rows got offsets that the data topic's log had passed before, the log lost its end, or the topic is
// another one. Those rows have made the log longer, so the log no longer shows it. So giveUp writes a
// watermark by which the successor fills the topic from the start.
func (s *Session) giveUp(ctx context.Context, b *batch, err error) error {
	if b.behind == nil && ctx.Err() == nil {
		return s.lose("writing", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if aborting := s.abort(ctx); aborting != nil {
		return s.lose("writing", fmt.Errorf("%w; aborting: %w", err, aborting))
	}
	if b.behind == nil {
		return fmt.Errorf("writing, until the transaction was aborted: %w", err)
	}
	err = errBehind
	if b.behind == &s.data {
		s.log.Warn("the data topic was created anew, or lost records, under this owner: publishing everything "+
			"from the start", zap.String("topic", s.data.name))
		s.data.ends, s.looked = nil, s.c.cfg.Now() // another look could end the session before this commit
		fresh := watermark.Transaction{Watermark: anew(&s.mark, s.data.id, s.target.resource)}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err = errors.Join(err, s.Commit(ctx, fresh))
	}
	return s.lose("writing to topic "+b.behind.name, err)
}

// abort is tried once: a broker that does not answer keeps it for as long as it may take.
func (s *Session) abort(ctx context.Context) error {
	s.open = false
	if err := s.cl.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	if err := s.cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return err
	}
	// The client may have healed itself under a new epoch or given up: only an id without an error will do.
	_, _, err := s.cl.ProducerID(ctx)
	return err
}

// lose marks the session as lost, and returns the reason.
func (s *Session) lose(step string, err error) error {
	s.lost = true
	return fmt.Errorf("%s: %w: %w", step, ErrLost, err)
}

// closeTimeout bounds Close: the group waits for a resource that it takes away.
const closeTimeout = 5 * time.Second

// Close gives the right back. It aborts an open transaction, so that readers of the watermark topic need
// not wait for the transaction's timeout. If another owns the topic already, the brokers refuse that. It
// takes seconds at most, and may be called again.
func (s *Session) Close() {
	if s.open {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.abort(ctx); err != nil {
			s.log.Warn("an open transaction could not be aborted: the broker does so after its timeout, if a "+
				"successor has not", zap.Error(err))
		}
	}
	s.lost, s.open = true, false
	s.cl.Close()
}
