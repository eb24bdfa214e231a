package producer

import (
	"context"
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

// A transaction hangs if a partition has it open and its coordinator does not. Nothing behind it is shown
// to any read_committed consumer, for ever: neither the broker's timeout nor fencing ends what the
// coordinator does not know of.
//
// It was met on Apache Kafka 4.3.1, whose brokers are meant to refuse it (KIP-890). The sequence: a broker
// stands still for eight seconds with a produce request in hand. Its owner's session in the group ends
// meanwhile. Awake, the broker writes the record. The coordinator was never told that the partition is part
// of the transaction, so it answers the successor's request for a producer id with nothing to abort. All five
// resources then waited for one record in the watermark topic, through every takeover, for three quarters of
// an hour.
//
// So every takeover looks at every open transaction in its partitions, of any producer id, and so does an
// owner that finds its topics' stable offsets behind (Session.sameLogs). The producer id alone does not
// tell: a transactional id gets another one after a week without use (transactional.id.expiration.ms), and
// after 32,767 epochs, which an owner that commits once a second uses up in nine hours. What hangs under
// the earlier one is hidden from fencing.

// openTransaction is a transaction that is open in one partition.
type openTransaction struct {
	topic      string
	partition  int32
	producerID int64
	from       int64 // its first offset
}

// producers are what brokers say of the producers of open transactions.
type producers map[openTransaction]kadm.DescribedProducer

// errCannotAsk: a broker before 3.0, or one that does not let us ask, says nothing of transactions.
var errCannotAsk = errors.New("the brokers do not tell which transactions are open")

// openIn returns the transactions that are open in the topics.
func (c *Cluster) openIn(ctx context.Context, topics ...string) (producers, error) {
	asked := make(kadm.TopicsSet)
	for _, topic := range topics {
		info, err := c.meta.describe(ctx, topic, false)
		if err != nil {
			return nil, err
		}
		for p := range info.leaders {
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
	open := make(producers)
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			open[openTransaction{p.Topic, p.Partition, p.ProducerID, p.CurrentTxnStartOffset}] = p
		}
	})
	return open, nil
}

// looksAtHanging is how often a transaction has to be found open, and not at its coordinator, before it is
// believed to hang: a coordinator that has just moved may not know its transactions yet.
const looksAtHanging = 3

// hangingTransaction is one, and how it can be ended.
type hangingTransaction struct {
	openTransaction
	epoch            int16
	coordinatorEpoch int32
	// transactionalID has this producer id now, and no transaction; "": no coordinator knows the producer id.
	transactionalID string
	// proven: every coordinator has answered, and shows us every transactional id. If not, a program whose
	// transactional id is hidden from this user may be at work.
	proven bool
}

// hanging returns those of the open transactions that hang. A transaction that its coordinator has is left
// to whoever began it, and to the brokers' timeout: the topics of watermarks and dead letters are shared,
// and there another resource's owner is always at work.
//
// The partition has a transaction from its first record to its marker, and meanwhile the coordinator has it
// as well. So one that is in the partition before and after its coordinator is asked, and is not at the
// coordinator, hangs.
func (c *Cluster) hanging(ctx context.Context, open producers) ([]hangingTransaction, error) {
	found := make(map[openTransaction]hangingTransaction)
	for range looksAtHanging {
		if len(open) == 0 {
			return nil, nil
		}
		clear(found)
		ids, topics := map[int64]bool{}, map[string]bool{}
		for o := range open {
			ids[o.producerID], topics[o.topic] = true, true
		}
		listed, err := c.admin.ListTransactions(ctx, slices.Collect(maps.Keys(ids)), nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCannotAsk, err)
		}
		all := c.seesAllTransactions(ctx)
		for o, p := range open {
			h := hangingTransaction{openTransaction: o, epoch: p.ProducerEpoch, proven: all,
				coordinatorEpoch: max(p.CoordinatorEpoch, 0)}
			live := false
			for _, t := range listed {
				if t.ProducerID == o.producerID {
					h.transactionalID = t.TxnID
					live = live || t.State != "Empty" && t.State != "CompleteCommit" && t.State != "CompleteAbort"
				}
			}
			if !live {
				found[o] = h
			}
		}
		if err := wait.For(ctx, shortLogPause); err != nil {
			return nil, err
		}
		again, err := c.openIn(ctx, slices.Collect(maps.Keys(topics))...)
		if err != nil {
			return nil, err
		}
		open = make(producers)
		for o := range found {
			if p, still := again[o]; still {
				open[o] = p
			}
		}
	}
	var hanging []hangingTransaction
	for o := range open {
		hanging = append(hanging, found[o])
	}
	return hanging, nil
}

// seesAllTransactions says whether a list of the transactions is complete for this user. Brokers leave out,
// and do not say so, those of transactional ids that the user may not describe; and those of a coordinator
// that is down. So it asks for an id that is no user's, and whether each partition of the coordinators' log
// has a leader.
func (c *Cluster) seesAllTransactions(ctx context.Context) bool {
	id := newUID()
	described, err := c.admin.DescribeTransactions(ctx, id)
	if err != nil || !errors.Is(described[id].Err, kerr.TransactionalIDNotFound) {
		return false
	}
	log, err := c.meta.ask(ctx, "__transaction_state", false)
	for _, p := range log.Partitions {
		if p.Leader < 0 || p.ErrorCode != 0 {
			return false
		}
	}
	return err == nil && len(log.Partitions) > 0
}

// endHanging ends the transactions that hang among the open ones. The error is a *RefusedError for one that
// it cannot end, with the command that does.
func (t *takeover) endHanging(ctx context.Context, open producers) error {
	hanging, err := t.c.hanging(ctx, open)
	if errors.Is(err, errCannotAsk) {
		t.log.Info("cannot tell whether transactions hang, and waits for those that are open", zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	var refused []error
	for _, h := range hanging {
		refused = append(refused, t.end(ctx, h))
	}
	return errors.Join(refused...)
}

// endedHanging is the log's line for one that is over.
const endedHanging = "ended a transaction that the broker left open in the log although its coordinator " +
	"has forgotten it"

// end ends a hanging transaction. Of a transactional id of ours it fences the owner, if one lives: that may
// begin a transaction in this partition at any moment, and a marker would end it as well. Under a producer
// id that no coordinator knows nobody can begin one.
func (t *takeover) end(ctx context.Context, h hangingTransaction) (err error) {
	partition := kadm.TopicsSet{h.topic: {h.partition: {}}}
	switch {
	case strings.HasPrefix(h.transactionalID, t.c.transactionalID("")):
		other := takeover{c: t.c, id: h.transactionalID}
		err = other.abortIn(ctx, partition)
	case h.transactionalID != "":
		err = errors.New("another program's transactional id has it: " + h.transactionalID)
	case !h.proven:
		err = errors.New("no coordinator shows it to this user, who may not see every transactional id")
	default:
		err = t.writeAbort(ctx, h, partition)
	}
	if err == nil {
		t.log.Warn(endedHanging, zap.String("topic", h.topic), zap.Int32s("partitions", []int32{h.partition}),
			zap.Int64("producer_id", h.producerID))
		return nil
	}
	refused := &RefusedError{Topic: h.topic,
		Setting: fmt.Sprintf("partition %d from offset %d on", h.partition, h.from),
		Found: fmt.Sprintf("hidden from every read_committed consumer by an open transaction of producer id %d, "+
			"which storestream cannot end (%v)", h.producerID, err),
		Expected: "no transaction that its coordinator does not have",
		Do: t.c.Tool("kafka-transactions.sh", "abort", "--topic", h.topic, "--partition",
			strconv.Itoa(int(h.partition)), "--start-offset", strconv.FormatInt(h.from, 10)) +
			" (it takes an administrator's login)"}
	if h.transactionalID != "" || !h.proven {
		refused.MayPass = true
		refused.Do = "wait for transaction.max.timeout.ms of the brokers' settings (15 minutes), within which it " +
			"ends if a program is at work; if it does not, " + refused.Do
	}
	return refused
}

// writeAbort writes the marker that ends a transaction of a producer id that no coordinator knows, as
// kafka-transactions.sh does. It takes a right on the cluster.
func (t *takeover) writeAbort(ctx context.Context, h hangingTransaction, partition kadm.TopicsSet) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	written, err := t.c.admin.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: h.producerID,
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
