package producer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// A log only grows: neither compaction nor the deletion of its oldest records takes anything from its end.
// So a log that ends before an offset that it had reached lost records (an unclean leader election, a disk
// that was restored), or it is another one under the same name. Brokers before 2.8, and some others, give
// topics no ids: there this is the only sign.

// shortened describes a partition that had reached its offset in noted and ends before it now. It is empty
// if there is none. A log that lost partitions is described, too.
func shortened(noted, now []int64) string {
	for p, end := range noted {
		switch {
		case p >= len(now):
			return fmt.Sprintf("it had %s and has %d now", terminal.Plural(len(noted), "partition"), len(now))
		case now[p] < end:
			return fmt.Sprintf("partition %d had reached offset %d and ends at %d now", p, end, now[p])
		}
	}
	return ""
}

// otherLog returns the reason why the data topic that is there now, whose partitions end at ends, does not
// hold everything that mark covers. It is empty if the topic may hold everything. An unknown id does not
// count: it is not equal to another unknown one, and not different from a known one. So a cluster that
// gains ids republishes nothing.
func otherLog(mark *watermark.Watermark, topic topicInfo, ends []int64) string {
	if topic.otherID(mark.TopicID) {
		return "it was created anew: it has another id"
	}
	lost := shortened(mark.Ends, ends)
	if mark.Ends == nil && int(mark.Partitions) > len(ends) { // a watermark of beginAfresh notes no ends
		lost = fmt.Sprintf("it had %s and has %d now", terminal.Plural(mark.Partitions, "partition"), len(ends))
	}
	switch {
	case lost == "":
		return ""
	case mark.TopicID != "" && mark.TopicID == topic.idText():
		return "it lost records: " + lost
	}
	return "it was created anew or lost records: " + lost
}

// OtherLog returns the reason why a takeover by mark would fill the data topic from the start. It is empty
// if it would not.
func OtherLog(ctx context.Context, c *Cluster, mark watermark.Watermark) (string, error) {
	topic, err := c.meta.describe(ctx, c.Topic(mark.Resource), true)
	if err != nil {
		return "", err
	}
	ends, err := c.meta.offsets(ctx, topic.name, c.admin.ListEndOffsets)
	if err != nil {
		return "", err
	}
	return otherLog(&mark, topic, ends), nil
}

// keysToAsk is how many of a partition's oldest records OtherPartitions checks.
const keysToAsk = 1000

// OtherPartitions returns why a data topic that has now partitions cannot be written, if mark says that it
// had another number: a *RefusedError, or the error that kept it from finding out.
//
// The advice may be to delete the topic, and the one record that mark comes from may be forged. So
// OtherPartitions also checks the keys in the topic. Partitions can only be added. If they were, some of
// the oldest records are in the partition that was their key's with the number before and is not their
// key's now. At least two records have to show it, or all of them if the topic has fewer.
func OtherPartitions(ctx context.Context, c *Cluster, mark watermark.Watermark, now int) error {
	topic, was := c.Topic(mark.Resource), int(mark.Partitions)
	refused := &RefusedError{Topic: topic, Setting: "the number of partitions", Found: strconv.Itoa(now)}
	marks, err := c.meta.describe(ctx, c.Watermarks(), false)
	if err != nil {
		return err
	}
	spans, err := c.meta.toStableOffset(ctx, topic)
	if err != nil {
		return err
	}
	if was < now {
		ours, moved := 0, 0
		before, after := partitionsOf(was), partitionsOf(now)
		for i := range spans {
			asked := 0
			for record, err := range c.fold(ctx, topic, spans[i:i+1]) {
				if err != nil {
					return err
				}
				if _, _, err := schemas.ReadKey(record.Key); err == nil {
					if ours++; before(record) == record.Partition && after(record) != record.Partition {
						moved++
					}
				}
				if asked++; asked == keysToAsk {
					break
				}
			}
		}
		if moved > 1 || moved == ours {
			refused.Expected = fmt.Sprintf("%d (with another count a key hashes to another partition, and its "+
				"old record stays beside the new one; %d of the %d oldest records are such)", was, moved, ours)
			refused.Do = "delete the topic: storestream creates it again and fills it from the start"
			return refused
		}
	}
	refused.Expected = fmt.Sprintf("%d, but only the watermark says so (topic %s, partition %d; by "+
		"instance %q of group %q), and no key in the topic", was, c.Watermarks(),
		partitionOf(mark.Resource, len(marks.leaders)), mark.Instance, mark.Group)
	refused.Do = "another program wrote that watermark: take it out as docs/security.md says, \"When somebody " +
		"wrote to store.watermarks or store.requests\""
	return refused
}

// TopicID is the id of a resource's data topic. It is empty if the brokers give topics no ids.
func TopicID(ctx context.Context, c *Cluster, resource string) (string, error) {
	topic, err := c.meta.describe(ctx, c.Topic(resource), true)
	return topic.idText(), err
}

// anew returns the watermark by which a topic of r is filled from the start. The requests that were
// carried out and the fields of the source stay known. Written stays, because it orders watermarks. A topic
// that lost its end still holds rows, and they may have been published under other policies.
func anew(mark *watermark.Watermark, topic topicInfo, r *schemas.Resource) watermark.Watermark {
	fresh := watermark.New(mark.Resource)
	fresh.Request, fresh.RequestUID = mark.Request, mark.RequestUID
	fresh.Fields, fresh.Written = mark.Fields, mark.Written
	if !topic.otherID(mark.TopicID) {
		fresh.Policies = heldPolicies(mark.Policies, r)
	}
	return fresh
}

// heldPolicies returns the policies for the watermark of a topic that is filled from the start and holds
// rows that were published under held. It is nil if the policy in force is the only one.
func heldPolicies(held watermark.Policies, r *schemas.Resource) watermark.Policies {
	if all := held.Then(r.PolicyFingerprint()); all.Mixed() {
		return all
	}
	return nil
}

// writtenLog is a topic that a session writes, and how far its log has reached, as the session knows it.
type writtenLog struct {
	topicInfo
	// ends are offsets, by partition, that the log has reached. They are nil for the watermark topic: if it
	// is replaced under a session, the next commit writes the watermark to the new one.
	ends []int64
	// stood are the log's ends at the last check (Session.lookAgain).
	stood []int64
}

// endsAfter returns the offsets that the log has reached at least once the records of b are committed to it:
// after each partition's records, and the marker that ends the transaction.
func (l *writtenLog) endsAfter(b *batch) []int64 {
	ends, wrote := slices.Clone(l.ends), make([]int64, len(l.ends))
	placed := partitioner().ForTopic(l.name)
	for i := range b.records {
		if r := &b.records[i]; r.Topic == l.name {
			wrote[placed.Partition(r, len(ends))]++
		}
	}
	for p, n := range wrote {
		if n > 0 {
			ends[p] += n + 1
		}
	}
	return ends
}

// each yields the partition and offset of each record of b that a broker has acknowledged for the log.
func (l *writtenLog) each(b *batch) iter.Seq2[int32, int64] {
	return func(yield func(int32, int64) bool) {
		for i := range b.records {
			r := &b.records[i]
			if r.Topic != l.name || r.Offset < 0 || int(r.Partition) >= len(l.ends) {
				continue // a broker that knew it as a duplicate need not know its offset
			}
			if !yield(r.Partition, r.Offset) {
				return
			}
		}
	}
}

// behind reports whether some records of b got offsets that the log had passed before. Once they are
// committed the log can be as long as it was, and no longer shows that it lost its end.
func (l *writtenLog) behind(b *batch) bool {
	for p, offset := range l.each(b) {
		if offset < l.ends[p] {
			return true
		}
	}
	return false
}

// committed moves the ends after the records of b and the markers after them.
func (l *writtenLog) committed(b *batch) {
	for p, offset := range l.each(b) {
		l.ends[p] = max(l.ends[p], offset+2)
	}
}
