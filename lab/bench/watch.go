package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consumer is a read_committed consumer of a topic that need not be there yet. Its fetches wait only shortly:
// the client fetches a partition that shows itself during such a wait only when the wait is over, and its
// default of five seconds would make a first load look that much longer now and then.
func consumer(b *broker, topic string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(20*time.Millisecond), kgo.MetadataMaxAge(100*time.Millisecond),
		kgo.FetchMaxWait(250*time.Millisecond), kgo.DisableClientMetrics())
}

// loaded is the end of a first load, as the watermark topic showed it.
type loaded struct {
	done time.Time // when the watermark that said "complete" could be read
	rows int64
}

// awaitLoad waits until the watermark of a resource says that it has completed a pass, by reading the topic
// as any consumer would.
func awaitLoad(ctx context.Context, b *broker, resource string) (l loaded, err error) {
	cl, err := consumer(b, "store.watermarks")
	if err != nil {
		return l, err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return l, context.Cause(ctx)
		}
		now := time.Now()
		for r := range fetches.RecordsAll() {
			var mark struct {
				AsOf string `json:"as_of"`
				Rows int64  `json:"rows"`
			}
			if string(r.Key) != resource {
				continue
			}
			if err := json.Unmarshal(r.Value, &mark); err != nil {
				return l, fmt.Errorf("watermark: %w", err)
			}
			if mark.AsOf != "" && mark.AsOf[0] == '2' {
				return loaded{done: now, rows: mark.Rows}, nil
			}
		}
	}
}

// arrivals knows when records of a data topic became visible, by row id: the last time for each.
type arrivals struct {
	cl   *kgo.Client
	done chan struct{}
	mu   sync.Mutex
	at   map[int64]time.Time
	n    int
}

// watchAll watches the arrivals of orders, and returns when n have arrived.
func watchAll(ctx context.Context, b *broker, n int) (*arrivals, error) {
	a, err := watch(b)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, 2*time.Minute, "reading the topic", func() bool { return a.count() >= n }); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// watch watches the arrivals of orders.
func watch(b *broker) (*arrivals, error) {
	cl, err := consumer(b, "store.orders")
	if err != nil {
		return nil, err
	}
	a := &arrivals{cl: cl, at: map[int64]time.Time{}, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for {
			fetches := cl.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			now := time.Now()
			a.mu.Lock()
			for r := range fetches.RecordsAll() {
				if id, n := binary.Varint(r.Key[5:]); n > 0 {
					a.at[id] = now
					a.n++
				}
			}
			a.mu.Unlock()
		}
	}()
	return a, nil
}

func (a *arrivals) close() {
	a.cl.Close()
	<-a.done
}

// after waits for a row to arrive after an instant, and returns when it did.
func (a *arrivals) after(ctx context.Context, id int64, at time.Time,
	patience time.Duration) (arrived time.Time, err error) {
	err = until(ctx, patience, fmt.Sprintf("order %d", id), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		arrived = a.at[id]
		return arrived.After(at)
	})
	return arrived, err
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// lateness is by how many milliseconds each of these rows came later than it was committed.
func (a *arrivals) lateness(ctx context.Context, committed map[int64]time.Time) (late series, err error) {
	for id, at := range committed {
		arrived, err := a.after(ctx, id, at.Add(-time.Second), 2*time.Minute)
		if err != nil {
			return nil, err
		}
		late.add(arrived.Sub(at).Seconds() * 1000)
	}
	return late, nil
}
