package producer

import (
	"context"
	"fmt"
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

// otherLog returns the reason why the data topic that is there now, which has this id and whose partitions
// end at ends, does not hold everything that mark covers. It is empty if the topic may hold everything. An
// unknown id does not count: it is not equal to another unknown one, and not different from a known one. So a
// cluster that gains ids republishes nothing.
func otherLog(mark *watermark.Watermark, id string, ends []int64) string {
	if differ(id, mark.TopicID) {
		return "it was created anew: it has another id"
	}
	lost := shortened(mark.Ends, ends)
	if mark.Ends == nil && int(mark.Partitions) > len(ends) { // a watermark of anew notes no ends
		lost = fmt.Sprintf("it had %s and has %d now", terminal.Plural(mark.Partitions, "partition"), len(ends))
	}
	if lost == "" {
		return ""
	}
	return "it was created anew or lost records: " + lost
}

// OtherLog returns the reason why a takeover by mark would fill the data topic from the start. It is empty
// if it would not.
func OtherLog(ctx context.Context, c *Cluster, mark watermark.Watermark) (string, error) {
	id, err := TopicID(ctx, c, mark.Resource)
	if err != nil {
		return "", err
	}
	ends, err := c.offsets(ctx, c.Topic(mark.Resource), c.admin.ListEndOffsets)
	return otherLog(&mark, id, ends), err
}

// OtherPartitions is the refusal of a data topic that has now partitions, if mark says that it had another
// number. That one record may be forged, so it does not simply advise to delete the topic.
func OtherPartitions(c *Cluster, mark watermark.Watermark, now int) *RefusedError {
	return &RefusedError{Topic: c.Topic(mark.Resource), Setting: "the number of partitions",
		Found: strconv.Itoa(now), Expected: fmt.Sprintf("%d, as a watermark of instance %q of group %q in topic "+
			"%s says (with another count a key hashes to another partition, and its old record stays beside the "+
			"new one)", mark.Partitions, mark.Instance, mark.Group, c.Watermarks()),
		Do: "if partitions were added, delete the topic: storestream creates it again and fills it from the " +
			"start. If none were, another program wrote that watermark: take it out as docs/security.md says, " +
			"\"A forged watermark\""}
}

// TopicID is the id of a resource's data topic. It is empty if the brokers give topics no ids.
func TopicID(ctx context.Context, c *Cluster, resource string) (string, error) {
	topic, err := c.describe(ctx, c.Topic(resource))
	return topicID(topic), err
}

// anew returns the watermark with which the topic of r with this id is filled from the start. It keeps the
// requests that were carried out, their results and the fields of the source. It keeps the rows that wait for
// an erase, and a pause, because neither depends on the topic. It keeps Written, which orders watermarks. A
// topic that lost its end still holds rows, which may have been published under other policies.
func anew(mark *watermark.Watermark, id string, r *schemas.Resource) watermark.Watermark {
	fresh := watermark.New(mark.Resource)
	fresh.Request, fresh.RequestUID = mark.Request, mark.RequestUID
	fresh.Fields, fresh.Written, fresh.Pause = mark.Fields, mark.Written, mark.Pause
	fresh.Results, fresh.Erase, fresh.Erased = mark.Results, mark.Erase, mark.Erased
	for i := range mark.Parts {
		fresh.End(mark.Parts[i].Ended(mark.Written, "the topic is filled from the start"))
	}
	if !differ(id, mark.TopicID) {
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
	name       string
	id         string // of the topic; empty if it is not known
	partitions int
	// ends are offsets, by partition, that the log has reached. They are nil for the watermark topic: if it
	// is replaced under a session, the next commit writes the watermark to the new one.
	ends []int64
	// stood are the log's ends at the last check (Session.lookAgain).
	stood []int64
}

// find makes the log that of a topic as it is now.
func (l *writtenLog) find(ctx context.Context, c *Cluster, topic string) error {
	found, err := c.describe(ctx, topic)
	l.name, l.id, l.partitions = topic, topicID(found), len(found.Partitions)
	return err
}
