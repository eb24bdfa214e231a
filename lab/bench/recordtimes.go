package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// recordTimes counts the segments that three years of record times make of themselves, in one partition with Kafka's default settings: in their order and
// in a random one, with and without transactions. Transactions matter because the record that ends one carries the broker's clock, which is
// years later than the rows before it.
func (s *stage) recordTimes(ctx context.Context, b *broker, t *table) error {
	for _, transactions := range []bool{true, false} {
		for _, random := range []bool{false, true} {
			name := fmt.Sprintf("times-%v-%v", transactions, random)
			if err := s.createTopic(ctx, b, name, 1, nil); err != nil {
				return err
			}
			l := watchLog(ctx, b.data, name)
			err := writeHistory(ctx, b, name, transactions, random)
			n := l.begun()
			l.close()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			order, kind := "in order", "without transactions"
			if random {
				order = "at random"
			}
			if transactions {
				kind = "in transactions of 2000"
			}
			s.say("record times of three years %s, %s: %d segments", order, kind, n)
			t.note("segments of 100000 records with times of three years "+order+", "+kind+", Kafka's defaults, 1 partition", "", "%d", n)
		}
	}
	return nil
}

// createTopic makes a compacted topic: settings are what else differs from the broker's defaults.
func (s *stage) createTopic(ctx context.Context, b *broker, topic string, partitions int32, settings map[string]string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	compact := "compact"
	all := map[string]*string{"cleanup.policy": &compact}
	for key, value := range settings {
		all[key] = &value
	}
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, -1, all, topic)
	return err
}

// writeHistory writes 50 lots of 2000 records of 100 bytes, with times of three years, and waits after each lot.
func writeHistory(ctx context.Context, b *broker, topic string, transactions, random bool) error {
	const lots, lot = 50, 2000
	opts := []kgo.Opt{kgo.SeedBrokers(b.addr), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if transactions {
		opts = append(opts, kgo.TransactionalID("bench-"+topic))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	const history = 3 * 365 * 24 * time.Hour
	began, chance := time.Now().Add(-history), rand.New(rand.NewPCG(1, 2))
	for i := range lots {
		if transactions {
			if err := cl.BeginTransaction(); err != nil {
				return err
			}
		}
		records := make([]*kgo.Record, lot)
		for j := range records {
			n := i*lot + j
			at := time.Duration(n) * (history / (lots * lot))
			if random {
				at = time.Duration(chance.Int64N(int64(history)))
			}
			records[j] = &kgo.Record{Key: binary.BigEndian.AppendUint64(nil, uint64(n)), Value: make([]byte, 92), Timestamp: began.Add(at)}
		}
		err := cl.ProduceSync(ctx, records...).FirstErr()
		if transactions {
			err = errors.Join(err, cl.EndTransaction(ctx, kgo.TryCommit))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
