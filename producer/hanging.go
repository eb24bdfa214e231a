package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
)

// A transaction hangs if it is open in a partition and its coordinator does not have it. No read_committed
// consumer sees the records after it, and it does not end by itself: the broker's timeout and fencing end
// only transactions that the coordinator has.
//
// It happened on Apache Kafka 4.3.1, whose brokers are meant to prevent it (KIP-890). The sequence: a broker
// stands still for eight seconds with a produce request in hand. Meanwhile its owner's session in the group
// ends. When the broker wakes, it writes the record. The coordinator was never told that the partition is
// part of the transaction. So when the successor asks for a producer id, the coordinator aborts no
// transaction. All five resources then waited for one record in the watermark topic, through every takeover,
// for three quarters of an hour.
//
// So every takeover checks all open transactions in its partitions, of every producer id. An owner does the
// same when its topics' stable offsets fall behind (Session.lookAgain). It is not enough to check one's own
// producer id. A transactional id gets another one after a week without use
// (transactional.id.expiration.ms), and after 32,767 epochs, which an owner that commits once a second uses
// up in nine hours. Fencing does not reach a transaction that hangs under the earlier producer id.

// errCannotAsk means that we cannot list transactions: the brokers are older than 3.0, or do not permit it.
var errCannotAsk = errors.New("the brokers do not tell which transactions are open")

// openIn returns the transactions that are open in the topics.
func openIn(ctx context.Context, c *Cluster, topics ...string) (open []kadm.DescribedProducer, err error) {
	asked := make(kadm.TopicsSet)
	for _, topic := range topics {
		asked.Add(topic) // all partitions
	}
	described, err := c.admin.DescribeProducers(ctx, asked)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(described) == 0 && err != nil {
		return nil, fmt.Errorf("%w: %w", errCannotAsk, err)
	}
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, p)
		}
	})
	return open, nil
}

// looksAtHanging is how many times in a row a transaction has to be open in the partition and absent at its
// coordinator before it counts as hanging. A coordinator that has just moved may not have loaded its
// transactions yet.
const looksAtHanging = 3

// hanging returns the transactions in the topics that hang, and by producer id the transactional ids that
// have them now, without a transaction. If the coordinator has a transaction, it is left to the program that
// began it and to the brokers' timeout: resources share the topics of watermarks and dead letters, and
// another resource's owner is always writing there.
//
// The coordinator has a transaction for at least as long as the partition has it, which is from its first
// record to its marker. So a transaction hangs if the partition has it both before and after the coordinator
// is asked, and the coordinator does not have it. Every broker is asked, because each coordinates a part of
// the transactional ids. If one does not answer, it may have a producer id that no other broker has: the
// transaction of that one is left alone.
func hanging(ctx context.Context, c *Cluster, topics ...string) (
	found []kadm.DescribedProducer, owners map[int64]string, err error) {
	if found, err = openIn(ctx, c, topics...); err != nil {
		return nil, nil, err
	}
	for look := 0; look < looksAtHanging && len(found) > 0; look++ {
		var ids []int64
		for _, o := range found {
			ids = append(ids, o.ProducerID)
		}
		slices.Sort(ids)
		listed, unasked := c.admin.ListTransactions(ctx, slices.Compact(ids), nil)
		if unasked != nil && len(listed) == 0 {
			return nil, nil, fmt.Errorf("%w: %w", errCannotAsk, unasked)
		}
		owners = make(map[int64]string)
		live := make(map[int64]bool)
		for _, t := range listed {
			owners[t.ProducerID] = t.TxnID
			live[t.ProducerID] = t.State != "Empty" && t.State != "CompleteCommit" && t.State != "CompleteAbort"
		}
		if err := wait.For(ctx, shortLogPause); err != nil {
			return nil, nil, err
		}
		again, err := openIn(ctx, c, topics...)
		if err != nil {
			return nil, nil, err
		}
		found = slices.DeleteFunc(found, func(o kadm.DescribedProducer) bool {
			unknown := unasked != nil && owners[o.ProducerID] == ""
			return unknown || live[o.ProducerID] || !slices.ContainsFunc(again, func(a kadm.DescribedProducer) bool {
				return a.Topic == o.Topic && a.Partition == o.Partition && a.ProducerID == o.ProducerID &&
					a.CurrentTxnStartOffset == o.CurrentTxnStartOffset
			})
		})
	}
	return found, owners, nil
}

// endHanging ends the hanging transactions in the topics, if they belong to one of our transactional ids, and
// reports whether it ended one. It fences that id's owner: a live owner may begin a transaction in this
// partition at any moment, and a marker would end that one too. For every other one the error has a
// *RefusedError with the command that ends it, which takes a right that storestream is not given.
func endHanging(ctx context.Context, c *Cluster, log *zap.Logger, topics ...string) (ended bool, err error) {
	found, owners, err := hanging(ctx, c, topics...)
	if err != nil {
		return false, err
	}
	var refused []error
	for _, h := range found {
		id, err := owners[h.ProducerID], errors.New("no coordinator shows its producer id to this user")
		if strings.HasPrefix(id, c.transactionalID("")) {
			err = abortIn(ctx, c, id, h.Topic, h.Partition)
		} else if id != "" {
			err = errors.New("another program's transactional id has it: " + id)
		}
		if err == nil {
			ended = true
			log.Warn("ended a transaction that the broker left open in the log although its coordinator has "+
				"forgotten it", zap.String("topic", h.Topic), zap.Int32("partition", h.Partition),
				zap.Int64("producer_id", h.ProducerID))
			continue
		}
		refused = append(refused, &RefusedError{Topic: h.Topic, MayPass: id != "",
			Setting: fmt.Sprintf("partition %d from offset %d on", h.Partition, h.CurrentTxnStartOffset),
			Found: fmt.Sprintf("hidden from every read_committed consumer by an open transaction of producer id "+
				"%d, which storestream cannot end (%v)", h.ProducerID, err),
			Expected: "no transaction that its coordinator does not have",
			Do: "if it is still there after transaction.max.timeout.ms of the brokers' settings (15 minutes), no " +
				"program is at work, and an administrator ends it by " +
				c.Tool("kafka-transactions.sh", "abort", "--topic", h.Topic, "--partition",
					strconv.Itoa(int(h.Partition)), "--start-offset", strconv.FormatInt(h.CurrentTxnStartOffset, 10))})
	}
	return ended, errors.Join(refused...)
}

// abortIn writes one record to the partition in a transaction of a transactional id, and aborts it. The
// marker ends every open transaction of its producer id in that partition. (Otherwise the next commit of this
// session would end that transaction, and publish records that no predecessor has committed.)
//
// The client uses the versions from before brokers added partitions by themselves. With these it adds the
// partition at the coordinator. A newer broker may take the partition for added already, because a
// transaction hangs there.
func abortIn(ctx context.Context, c *Cluster, id, topic string, partition int32) error {
	cl, err := c.client(kgo.TransactionalID(id), kgo.TransactionTimeout(transactionTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxVersions(kversion.V3_5_0()))
	if err != nil {
		return err
	}
	defer cl.Close()
	// The client begins a transaction without a context, and retries a record without end.
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout*4/5)
	defer cancel()
	if _, _, err := cl.ProducerID(ctx); err != nil {
		return fmt.Errorf("asking for the producer id of %s: %w", id, err)
	}
	if err := cl.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a transaction of %s: %w", id, err)
	}
	b := &batch{logs: [2]*writtenLog{{}, {}}}
	if err := b.send(ctx, cl, []kgo.Record{{Topic: topic, Partition: partition, Key: []byte{}}}); err != nil {
		return fmt.Errorf("adding the partition to a transaction of %s: %w", id, err)
	}
	return cl.EndTransaction(ctx, kgo.TryAbort)
}
