package producer

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"github.com/storestream/storestream/schemas"
)

// Requests are the requests of the last seven days, for any resource: the topic of requests, followed by
// one goroutine for the whole process. The first CatchUp starts it.
//
// An offset is the id of a request in one topic only. A person may delete the topic, and in its successor
// offsets begin with 0 again. So a request has an id of its own as well, its UID. If a watermark names a
// request that the topic does not hold, that one was deleted after its seven days, or was in another topic.
// Either way all requests in this one are new (After).
type Requests struct {
	c *Cluster

	start   func() // the following goroutine, once
	stop    context.CancelFunc
	running sync.WaitGroup

	looking chan struct{} // has room for the one look that is going on
	log     follower      // belongs to the look that is going on

	mu       sync.Mutex
	caughtUp bool                // the topic was read to its end once
	all      []watermark.Request // by ID, the newest mostRequests
	changed  chan struct{}       // closed when a request arrives, and replaced
}

// mostRequests limits the memory that a flood of requests takes in every instance: 20 MB, because package
// watermark limits each request. Sweeping five resources every two hours makes 420 requests in seven days.
const mostRequests = 5000

func newRequests(c *Cluster) *Requests {
	ctx, cancel := context.WithCancel(context.Background())
	q := &Requests{c: c, stop: cancel, looking: make(chan struct{}, 1), changed: make(chan struct{}),
		log: follower{c: c, topic: c.requestsTopic()}}
	q.start = sync.OnceFunc(func() { q.running.Go(func() { q.run(ctx) }) })
	return q
}

// Ask writes a request, and returns it with the ID and UID that it got. It returns when the brokers have
// the request, and does not wait until it is carried out.
func (q *Requests) Ask(ctx context.Context, request watermark.Request) (watermark.Request, error) {
	if err := EnsureTopics(ctx, q.c); err != nil {
		return request, err
	}
	request.UID = rand.Text()
	value, err := json.Marshal(request)
	if err != nil {
		return request, fmt.Errorf("request for %s: %w", request.Resource, err)
	}
	if _, err := watermark.DecodeRequest(request.Resource, 0, value); err != nil {
		return request, err // an owner would skip it
	}
	record := &kgo.Record{Topic: q.c.requestsTopic(), Partition: statePartition, Key: []byte(request.Resource),
		Value: value}
	if err := q.c.cl.ProduceSync(ctx, record).FirstErr(); err != nil {
		return request, fmt.Errorf("writing a request to topic %s: %w", record.Topic, err)
	}
	request.Topic, request.ID = record.Topic, record.Offset
	return request, nil
}

// CatchUp reads every request that consumers see now. Without it a successor would miss a request that its
// predecessor got a moment ago. No predecessor saw one that is after another program's open transaction.
func (q *Requests) CatchUp(ctx context.Context) error {
	q.start()
	if err := q.look(ctx); err != nil {
		return fmt.Errorf("reading the requests: %w", err)
	}
	return nil
}

// After returns the requests for resource after the one with this id and uid, in order. If that one is not
// there, it returns all. It returns none before the topic was read to its end: a later request would hide
// those before it.
func (q *Requests) After(resource string, id int64, uid string) (after []watermark.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.caughtUp {
		return nil
	}
	known := slices.IndexFunc(q.all, func(r watermark.Request) bool { return r.ID == id && r.UID == uid })
	for _, request := range q.all[known+1:] {
		if request.Resource == resource {
			after = append(after, request)
		}
	}
	return after
}

// Changed returns a channel that is closed when the next request arrives, for any resource. Call it before
// After, or a request can come in between.
func (q *Requests) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

func (q *Requests) close() {
	q.stop()
	q.running.Wait()
}

// run follows the topic until ctx ends.
func (q *Requests) run(ctx context.Context) {
	said := ""
	for wait.For(ctx, followPause) == nil {
		err := q.look(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if text := err.Error(); text != said {
			said = text
			q.c.log.Warn("requests cannot be read, trying again", zap.Error(err))
		}
	}
}

// look reads the requests that were written since the last look, and shows them all at once. It waits for no
// transaction: a program that leaves one open does not keep others' requests waiting.
func (q *Requests) look(ctx context.Context) error {
	select {
	case q.looking <- struct{}{}:
		defer func() { <-q.looking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	spans, anew, err := q.log.open(ctx, q.c.admin.ListCommittedOffsets)
	if err != nil {
		return err
	}
	var found []watermark.Request
	skipped, wrong := 0, error(nil)
	for record, err := range q.log.fold(ctx, spans) {
		if err != nil {
			return err
		}
		request, err := q.decode(record)
		if err != nil {
			wrong = cmp.Or(wrong, err)
			skipped++
			continue
		}
		if found = append(found, request); len(found) == 2*mostRequests {
			found = slices.Delete(found, 0, mostRequests-1) // one more than are kept
		}
	}
	if wrong != nil { // one line for all: a program may flood the topic
		q.c.log.Warn("skipping records that are not requests", zap.String("topic", q.log.topic),
			zap.Int("skipped", skipped), zap.NamedError("first", wrong))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if anew { // they replace those of another topic
		q.all = nil
	}
	q.all, q.caughtUp = append(q.all, found...), true
	if over := len(q.all) - mostRequests; over > 0 {
		q.c.log.Warn("too many requests in seven days: the oldest are forgotten, whether accepted or not",
			zap.String("topic", q.log.topic), zap.Int("kept", mostRequests))
		q.all = slices.Clone(q.all[over:])
	}
	if len(found) > 0 || anew {
		close(q.changed)
		q.changed = make(chan struct{})
	}
	return nil
}

// decode returns an error for a record that is not a request that we can carry out. Anybody can write to the
// topic, and a bad record must not stop the good ones after it.
func (q *Requests) decode(record *kgo.Record) (watermark.Request, error) {
	request, err := watermark.DecodeRequest(string(record.Key), record.Offset, record.Value)
	if err != nil {
		return request, err
	}
	request.Topic = record.Topic
	if now := schemas.InstantOf(q.c.cfg.Now()); request.At > now.Add(time.Minute) {
		// A request from the future would be confirmed until an hour after that time. So its time is not believed.
		q.c.log.Warn("a request says that it was asked for in the future: it counts as a day old",
			zap.String("topic", record.Topic), zap.Int64("request", request.ID), zap.Stringer("asked", request.At))
		request.At = now.Add(-24 * time.Hour)
	}
	return request, nil
}
