package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// weekOfMarks is how many watermarks of one resource a quiet week makes at one in ten seconds.
const weekOfMarks = 7 * 24 * 60 * 6

// takeovers measures a start after a quiet week, by the size of the topic. The week is faked: the newest row
// changed eight days ago, and the last watermark is written as many times more as a week would have.
func takeovers(ctx context.Context, r *round) error {
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	for _, n := range []int{r.large / 100, r.large / 10} {
		name, err := db.tableOf(ctx, n)
		if err != nil {
			return err
		}
		set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 1s"}}
		err = r.running(ctx, set, func(b *broker, first *stream) (err error) {
			if err := first.awaitReady(ctx, 5*time.Minute); err != nil {
				return err
			}
			if err := errors.Join(first.Stop(), repeatMark(ctx, b, storefake.Orders, r.quietMarks())); err != nil {
				return err
			}
			set.broker = b
			second, err := r.program.start(set)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, second.Kill()) }()
			if err := second.awaitReady(ctx, 5*time.Minute); err != nil {
				return err
			}
			what := fmt.Sprintf("start to ready after a quiet week, %s orders in the topic", count(n))
			r.add(figure{what, "2 s", "%.2f s", n == r.large/10}, time.Since(second.began).Seconds())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// quietMarks is how many watermarks fake a quiet week.
func (r *round) quietMarks() int {
	if r.quick {
		return 500
	}
	return weekOfMarks
}

// repeatMark writes the last watermark of a resource n times more.
func repeatMark(ctx context.Context, b *broker, resource string, n int) error {
	last, err := lastMark(ctx, b, resource)
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	again := &kgo.Record{Topic: last.Topic, Partition: last.Partition, Key: last.Key, Value: last.Value}
	for range n {
		copied := *again
		cl.Produce(ctx, &copied, func(_ *kgo.Record, failed error) { err = errors.Join(err, failed) })
	}
	return errors.Join(cl.Flush(ctx), err)
}

// lastMark is the newest watermark of a resource. Nobody writes any more.
func lastMark(ctx context.Context, b *broker, resource string) (*kgo.Record, error) {
	const topic = "store.watermarks"
	cl, err := consumer(b, topic)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var last *kgo.Record
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // longer than any of the consumer's waits
	defer cancel()
	for ctx.Err() == nil {
		records := cl.PollFetches(ctx).Records()
		for _, r := range slices.Backward(records) {
			if string(r.Key) == resource && (last == nil || r.Offset > last.Offset) {
				last = r
			}
		}
	}
	if last == nil {
		return nil, fmt.Errorf("topic %s: expected a watermark of %s", topic, resource)
	}
	return last, nil
}
