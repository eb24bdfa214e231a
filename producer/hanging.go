package producer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
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

// openTransaction is a transaction that is open in one partition.
type openTransaction struct {
	topic            string
	partition        int32
	producerID       int64
	from             int64 // its first offset
	epoch            int16
	coordinatorEpoch int32
}

// errCannotAsk means that we cannot list transactions: the brokers are older than 3.0, or do not permit it.
var errCannotAsk = errors.New("the brokers do not tell which transactions are open")

// openIn returns the transactions that are open in the topics.
func (c *Cluster) openIn(ctx context.Context, topics ...string) ([]openTransaction, error) {
	asked := make(kadm.TopicsSet)
	for _, topic := range topics {
		found, err := c.meta.describe(ctx, topic)
		if err != nil {
			return nil, err
		}
		for p := range found.Partitions {
			asked.Add(topic, int32(p))
		}
	}
	described, err := c.admin.DescribeProducers(ctx, asked)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(described) == 0 && err != nil {
		return nil, fmt.Errorf("%w: %w", errCannotAsk, err)
	}
	var open []openTransaction
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, openTransaction{p.Topic, p.Partition, p.ProducerID, p.CurrentTxnStartOffset,
				p.ProducerEpoch, max(p.CoordinatorEpoch, 0)})
		}
	})
	return open, nil
}

// looksAtHanging is how many times in a row a transaction has to be open in the partition and absent at its
// coordinator before it counts as hanging. A coordinator that has just moved may not have loaded its
// transactions yet.
const looksAtHanging = 3

// hangingTransaction is an open transaction that hangs.
type hangingTransaction struct {
	openTransaction
	// transactionalID has this producer id now, and no transaction. It is empty if no coordinator knows the
	// producer id.
	transactionalID string
	// proven is set if every coordinator has answered and this user may see every transactional id. Otherwise
	// a program whose transactional id is hidden from this user may be at work.
	proven bool
}

// hanging returns the open transactions that hang. If the coordinator has a transaction, it is left to the
// program that began it and to the brokers' timeout: resources share the topics of watermarks and dead
// letters, and another resource's owner is always writing there.
//
// The coordinator has a transaction for at least as long as the partition has it, which is from its first
// record to its marker. So a transaction hangs if the partition has it both before and after the coordinator
// is asked, and the coordinator does not have it.
func (c *Cluster) hanging(ctx context.Context, open []openTransaction) (
	found []hangingTransaction, err error) {
	for range looksAtHanging {
		if found = nil; len(open) == 0 {
			break
		}
		ids, topics := map[int64]bool{}, map[string]bool{}
		for _, o := range open {
			ids[o.producerID], topics[o.topic] = true, true
		}
		listed, err := c.admin.ListTransactions(ctx, slices.Collect(maps.Keys(ids)), nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCannotAsk, err)
		}
		all := c.seesAllTransactions(ctx)
		for _, o := range open {
			h, live := hangingTransaction{openTransaction: o, proven: all}, false
			for _, t := range listed {
				if t.ProducerID == o.producerID {
					h.transactionalID = t.TxnID
					live = live || t.State != "Empty" && t.State != "CompleteCommit" && t.State != "CompleteAbort"
				}
			}
			if !live {
				found = append(found, h)
			}
		}
		if err := wait.For(ctx, shortLogPause); err != nil {
			return nil, err
		}
		again, err := c.openIn(ctx, slices.Collect(maps.Keys(topics))...)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(h hangingTransaction) bool {
			return !slices.Contains(again, h.openTransaction)
		})
		open = nil
		for _, h := range found {
			open = append(open, h.openTransaction)
		}
	}
	return found, nil
}

// seesAllTransactions reports whether a list of the transactions is complete for this user. Brokers
// silently leave out transactional ids that the user may not describe, and those of a coordinator that is
// down. So it describes a random id: only a user who may describe all ids gets the answer "not found". And
// it checks that each partition of the coordinators' log has a leader.
func (c *Cluster) seesAllTransactions(ctx context.Context) bool {
	id := rand.Text()
	described, err := c.admin.DescribeTransactions(ctx, id)
	if err != nil || !errors.Is(described[id].Err, kerr.TransactionalIDNotFound) {
		return false
	}
	log, err := c.meta.describe(ctx, "__transaction_state")
	for _, p := range log.Partitions {
		if p.Leader < 0 || p.ErrorCode != 0 {
			return false
		}
	}
	return err == nil && len(log.Partitions) > 0
}

// endHanging ends the hanging transactions among the open ones. If it cannot end one, it returns a
// *RefusedError with the command that does.
func endHanging(ctx context.Context, c *Cluster, log *zap.Logger, open []openTransaction) error {
	hanging, err := c.hanging(ctx, open)
	if errors.Is(err, errCannotAsk) {
		log.Info("cannot tell whether transactions hang, and waits for those that are open", zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	var refused []error
	for _, h := range hanging {
		refused = append(refused, h.end(ctx, c, log))
	}
	return errors.Join(refused...)
}

// endedHanging is the log line for a hanging transaction that was ended.
const endedHanging = "ended a transaction that the broker left open in the log although its coordinator " +
	"has forgotten it"

// end ends a hanging transaction. If it belongs to one of our transactional ids, end fences that id's owner:
// a live owner may begin a transaction in this partition at any moment, and a marker would end that one too.
// If no coordinator knows the producer id, no program can begin a transaction under it.
func (h hangingTransaction) end(ctx context.Context, c *Cluster, log *zap.Logger) (err error) {
	partition := kadm.TopicsSet{h.topic: {h.partition: {}}}
	switch {
	case strings.HasPrefix(h.transactionalID, c.transactionalID("")):
		err = abortIn(ctx, c, h.transactionalID, partition)
	case h.transactionalID != "":
		err = errors.New("another program's transactional id has it: " + h.transactionalID)
	case !h.proven:
		err = errors.New("no coordinator shows it to this user, who may not see every transactional id")
	default:
		err = h.writeAbort(ctx, c, partition)
	}
	if err == nil {
		log.Warn(endedHanging, zap.String("topic", h.topic), zap.Int32s("partitions", []int32{h.partition}),
			zap.Int64("producer_id", h.producerID))
		return nil
	}
	refused := &RefusedError{Topic: h.topic,
		Setting: fmt.Sprintf("partition %d from offset %d on", h.partition, h.from),
		Found: fmt.Sprintf("hidden from every read_committed consumer by an open transaction of producer id %d, "+
			"which storestream cannot end (%v)", h.producerID, err),
		Expected: "no transaction that its coordinator does not have",
		Do: c.Tool("kafka-transactions.sh", "abort", "--topic", h.topic, "--partition",
			strconv.Itoa(int(h.partition)), "--start-offset", strconv.FormatInt(h.from, 10)) +
			" (it takes an administrator's login)"}
	if h.transactionalID != "" || !h.proven {
		refused.MayPass = true
		refused.Do = "wait for transaction.max.timeout.ms of the brokers' settings (15 minutes), within which it " +
			"ends if a program is at work; if it does not, " + refused.Do
	}
	return refused
}

// writeAbort writes the marker that ends a transaction whose producer id no coordinator knows, as
// kafka-transactions.sh does. It needs a right on the cluster.
func (h hangingTransaction) writeAbort(ctx context.Context, c *Cluster, partition kadm.TopicsSet) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	written, err := c.admin.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: h.producerID,
		ProducerEpoch: h.epoch, CoordinatorEpoch: h.coordinatorEpoch, Topics: partition})
	if err != nil {
		return err
	}
	answer, ok := written[h.producerID].Topics[h.topic].Partitions[h.partition]
	if !ok {
		return errors.New("no broker has answered")
	}
	return answer.Err
}
