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

// consumer is a read_committed consumer of topics that need not be there yet. Its fetches wait shortly: a partition that shows itself while one waits is fetched
// only after that, which by the client's default would make a first load look five seconds longer now and then.
func consumer(b *broker, topics ...string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(20*time.Millisecond), kgo.MetadataMaxAge(100*time.Millisecond),
		kgo.FetchMaxWait(250*time.Millisecond), kgo.DisableClientMetrics())
}

// loaded is what the watermark topic showed of a first load.
type loaded struct {
	first, done time.Time // when the first watermark, and the one that said "complete", could be read
	rows        int64
}

// awaitLoad waits until the watermark of a resource says that it has completed a pass, by reading the topic as any consumer would.
func awaitLoad(ctx context.Context, b *broker, topic, resource string) (l loaded, err error) {
	cl, err := consumer(b, topic)
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
			if l.first.IsZero() && mark.Rows > 0 {
				l.first = now
			}
			if l.rows = mark.Rows; mark.AsOf != "" && mark.AsOf[0] == '2' {
				l.done = now
				return l, nil
			}
		}
	}
}

// arrivals notes when records of a data topic became visible, by row id: the last time for each.
type arrivals struct {
	cl   *kgo.Client
	mu   sync.Mutex
	at   map[int64]time.Time
	n    int
	done chan struct{}
}

// watch notes the arrivals of orders.
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

func (a *arrivals) of(id int64) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.at[id]
	return t, ok
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}
