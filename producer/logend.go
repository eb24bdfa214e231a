package producer

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// A log only grows: neither compaction nor the deletion of its oldest records takes anything from its end. So
// a log that ends before an offset that it had reached lost records (an unclean leader election, a disk that
// was put back), or it is another one under the same name. Brokers before 2.8, and some others, give topics
// no ids: there this is the only way to tell.

// shortened says where a log that had reached the offsets in noted (by partition) ends before them now; "" if
// it does nowhere. Fewer partitions than noted are no log at all.
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

// otherLog says why the data topic that is there now, whose partitions end at ends, does not hold all that
// mark tells of; "" where it may. An id that is unknown says nothing: it is not equal to another unknown one,
// and not different from a known one. So a cluster that gains ids republishes nothing.
func otherLog(mark *watermark.Watermark, topic topicInfo, ends []int64) string {
	if topic.otherID(mark.TopicID) {
		return "it was created anew: it has another id"
	}
	lost := shortened(mark.Ends, ends)
	if mark.Ends == nil {
		lost = fewerThanPublished(mark, ends)
	}
	switch {
	case lost == "":
		return ""
	case mark.TopicID != "" && mark.TopicID == topic.idText():
		return "it lost records: " + lost
	}
	return "it was created anew or lost records: " + lost
}

// OtherLog says why the data topic that is there now does not hold all that mark tells of, as a takeover
// would find, which then fills it from the start; "" where it may.
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
// OtherPartitions also checks the keys in the topic. Partitions can only be added. If they were, some of the
// oldest records are in the partition that was their key's with the number before and is not their key's now.
// At least two records have to show it, or all of them if the topic has fewer.
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
	refused.Expected = fmt.Sprintf("%d, but only the watermark says so (topic %s, partition %d; by instance %q "+
		"of group %q), and no key in the topic", was, c.Watermarks(),
		partitionOf(mark.Resource, len(marks.leaders)), mark.Instance, mark.Group)
	refused.Do = "another program wrote that watermark: take it out as docs/security.md says, \"When somebody " +
		"wrote to store.watermarks or store.requests\""
	return refused
}

// TopicID is the id of a resource's data topic, "" where its brokers give none.
func TopicID(ctx context.Context, c *Cluster, resource string) (string, error) {
	topic, err := c.meta.describe(ctx, c.Topic(resource), true)
	return topic.idText(), err
}

// fewerThanPublished is shortened for a watermark of before 2026-11-22, which notes no ends: each row that
// was published is a record.
func fewerThanPublished(mark *watermark.Watermark, ends []int64) string {
	records := int64(0)
	for _, end := range ends {
		records += end
	}
	switch {
	case int(mark.Partitions) > len(ends):
		return fmt.Sprintf("it had %s and has %d now", terminal.Plural(mark.Partitions, "partition"), len(ends))
	case records < mark.Rows:
		return fmt.Sprintf("%s had been published to it, and it never had more than %s",
			terminal.Plural(mark.Rows, "row"), terminal.Plural(records, "record"))
	}
	return ""
}

// afresh is the watermark by which t is filled from the start. What was published is not in it, or not all
// of it. But what was asked for and done stays done, and what is known of the source stays known. Written
// stays, for it orders watermarks. And a topic that lost its end holds rows yet, maybe of other policies.
func afresh(mark *watermark.Watermark, t *target) watermark.Watermark {
	fresh := watermark.New(mark.Resource)
	fresh.Request, fresh.RequestUID = mark.Request, mark.RequestUID
	fresh.Fields, fresh.Written = mark.Fields, mark.Written
	if !t.topic.otherID(mark.TopicID) {
		fresh.Policies = heldPolicies(mark.Policies, t)
	}
	return fresh
}

// heldPolicies is what a watermark says of a topic that is filled from the start, and holds rows that were
// published under these policies: nothing, where the one in force is the only one.
func heldPolicies(held watermark.Policies, t *target) watermark.Policies {
	if all := held.Then(t.resource.PolicyFingerprint()); all.Mixed() {
		return all
	}
	return nil
}

// endsAfter is where the topic's log ends at least when the records of b are committed to it, after it had
// reached before: behind each partition's records, and the marker that ends the transaction.
func (b *batch) endsAfter(before []int64, topic string) []int64 {
	ends, wrote := slices.Clone(before), make([]int64, len(before))
	placed := partitioner().ForTopic(topic)
	for i := range b.records {
		if r := &b.records[i]; r.Topic == topic {
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

// acknowledged is where the topic's log ends at least when the records of b, which brokers have acknowledged,
// are committed. behind: some got offsets that the log had passed before.
func (b *batch) acknowledged(before []int64, topic string) (ends []int64, behind bool) {
	ends = slices.Clone(before)
	for i := range b.records {
		r := &b.records[i]
		if r.Topic != topic || r.Offset < 0 || int(r.Partition) >= len(ends) {
			continue // a broker that knew it as a duplicate need not say where it stands
		}
		behind = behind || r.Offset < before[r.Partition]
		ends[r.Partition] = max(ends[r.Partition], r.Offset+2)
	}
	return ends, behind
}
