package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
)

// Requests are what the command line has asked for in the last seven days, of any resource: the topic of
// requests, read from its start by one goroutine for the whole process. The first CatchUp starts it.
type Requests struct {
	c *Cluster

	start   func() // the reading goroutine, once
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	at       int64 // the next offset to read
	caughtUp bool  // at has been at the topic's end once
	// moved is closed, and made anew, when at changes; changed when a request arrives.
	moved, changed chan struct{}
	byResource     map[string][]watermark.Request
}

func newRequests(c *Cluster) *Requests {
	ctx, cancel := context.WithCancel(context.Background())
	q := &Requests{c: c, stop: cancel, moved: make(chan struct{}), changed: make(chan struct{}),
		byResource: make(map[string][]watermark.Request)}
	q.start = sync.OnceFunc(func() { q.running.Go(func() { q.run(ctx) }) })
	return q
}

// Ask writes a request and returns its id. It returns when the brokers have it, not when it is carried out.
func (q *Requests) Ask(ctx context.Context, request watermark.Request) (int64, error) {
	if err := EnsureTopics(ctx, q.c); err != nil {
		return 0, err
	}
	value, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("request for %s: %w", request.Resource, err)
	}
	if _, err := watermark.DecodeRequest(request.Resource, 0, value); err != nil {
		return 0, err // an owner would skip it
	}
	record := &kgo.Record{Topic: q.c.requestsTopic(), Key: []byte(request.Resource), Value: value}
	if err := q.c.cl.ProduceSync(ctx, record).FirstErr(); err != nil {
		return 0, fmt.Errorf("writing a request to topic %s: %w", record.Topic, err)
	}
	return record.Offset, nil
}

// CatchUp waits until every request that the topic holds now has been read. A successor that looked earlier
// would miss what was asked of its predecessor a moment ago.
func (q *Requests) CatchUp(ctx context.Context) error {
	q.start()
	ends, err := q.c.meta.offsets(ctx, q.c.requestsTopic(), q.c.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	for {
		q.mu.Lock()
		reached, moved := q.at >= ends[0], q.moved
		q.caughtUp = q.caughtUp || reached
		q.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reading the requests up to offset %d: %w", ends[0], context.Cause(ctx))
		case <-moved:
		}
	}
}

// After returns the requests for resource with an id greater than id, in order. Where the topic ends at or
// before id, that id comes from another topic (this one was deleted and created again): then all are
// returned.
func (q *Requests) After(resource string, id int64) []watermark.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.caughtUp && id >= q.at {
		id = -1
	}
	all := q.byResource[resource]
	i := slices.IndexFunc(all, func(req watermark.Request) bool { return req.ID > id })
	if i < 0 {
		return nil
	}
	return slices.Clone(all[i:])
}

// Changed is closed when the next request arrives, for whichever resource. Ask for it before After, or one
// can come between.
func (q *Requests) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

func (q *Requests) close() {
	q.stop()
	q.running.Wait()
}

// run reads the topic until ctx ends, and begins again after whatever fails.
func (q *Requests) run(ctx context.Context) {
	// A client of its own, because the reader lets the broker wait for two seconds (see logReader).
	cl, err := q.c.client()
	if err != nil {
		q.c.log.Error("requests cannot be read", zap.Error(err)) // the options have made a client before
		return
	}
	defer cl.Close()
	said := ""
	for ctx.Err() == nil {
		err := q.follow(ctx, cl)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errSpoilt) {
			q.forget()
		}
		if text := err.Error(); text != said && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			said = text
			q.c.log.Warn("requests cannot be read, trying again", zap.Error(err))
		}
		_ = wait.For(ctx, time.Second)
	}
}

// forget begins with the first offset again: the topic is no longer the one that was read.
func (q *Requests) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at, q.caughtUp = 0, false
	q.byResource = make(map[string][]watermark.Request)
}

func (q *Requests) follow(ctx context.Context, cl *kgo.Client) error {
	topic := q.c.requestsTopic()
	starts, err := q.c.meta.offsets(ctx, topic, q.c.admin.ListStartOffsets)
	if err != nil {
		return err
	}
	q.move(max(q.at, starts[0]))
	reader := logReader{meta: q.c.meta, cl: cl, topic: topic, span: span{to: forEver}, at: q.at,
		fetchWait: 2 * time.Second}
	return reader.run(ctx, func(records []*kgo.Record) error {
		for _, record := range records {
			q.add(record)
		}
		q.move(reader.at)
		return nil
	})
}

func (q *Requests) move(at int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at = at
	close(q.moved)
	q.moved = make(chan struct{})
}

// add takes in one record. It skips what is not a request that we can carry out: anybody can write to the
// topic, and one bad record must not stop the good ones behind it.
func (q *Requests) add(record *kgo.Record) {
	request, err := watermark.DecodeRequest(string(record.Key), record.Offset, record.Value)
	if err != nil {
		q.c.log.Warn("skipping a record that is not a request",
			zap.String("topic", record.Topic), zap.Int64("offset", record.Offset), zap.Error(err))
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byResource[request.Resource] = append(q.byResource[request.Resource], request)
	close(q.changed)
	q.changed = make(chan struct{})
}
