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
// request that the topic should hold and does not, the watermark speaks of another topic. Then all requests
// in this one are new (After).
type Requests struct {
	c *Cluster

	start   func() // the following goroutine, once
	stop    context.CancelFunc
	running sync.WaitGroup

	looking chan struct{} // has room for the one look that is going on
	log     follower      // belongs to the look that is going on

	mu       sync.Mutex
	caughtUp bool                // the topic was read to its end once
	first    int64               // the first offset whose request is kept, if it is one
	at       int64               // the next offset to read
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
	request.UID = newUID()
	value, err := json.Marshal(request)
	if err != nil {
		return request, fmt.Errorf("request for %s: %w", request.Resource, err)
	}
	if _, err := watermark.DecodeRequest(request.Resource, 0, value); err != nil {
		return request, err // an owner would skip it
	}
	record := &kgo.Record{Topic: q.c.requestsTopic(), Key: []byte(request.Resource), Value: value}
	if err := q.c.cl.ProduceSync(ctx, record).FirstErr(); err != nil {
		return request, fmt.Errorf("writing a request to topic %s: %w", record.Topic, err)
	}
	request.Topic, request.ID = record.Topic, record.Offset
	return request, nil
}

// newUID is a random UUID (version 4).
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// CatchUp reads every request that the topic holds now. Without it a successor would miss a request that its
// predecessor got a moment ago. It waits for open transactions. First it shows the requests before them,
// because no other look can do so while it waits.
func (q *Requests) CatchUp(ctx context.Context) error {
	q.start()
	for _, end := range []lister{q.c.admin.ListCommittedOffsets, q.c.admin.ListEndOffsets} {
		if err := q.look(ctx, end); err != nil {
			return fmt.Errorf("reading the requests: %w", err)
		}
	}
	return nil
}

// After returns the requests for resource after the one with this id and uid, in order. -1 is before the
// first. If that one is from another topic, it returns all. It returns none before the topic was read to
// its end: a later request would hide those before it.
func (q *Requests) After(resource string, id int64, uid string) []watermark.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.caughtUp {
		return nil
	}
	if q.elsewhere(resource, id, uid) {
		id = -1
	}
	var after []watermark.Request
	for _, request := range q.all[q.index(id+1):] {
		if request.Resource == resource {
			after = append(after, request)
		}
	}
	return after
}

// index is the position of the first request with this id or a later one.
func (q *Requests) index(id int64) int {
	at, _ := slices.BinarySearchFunc(q.all, id,
		func(r watermark.Request, id int64) int { return cmp.Compare(r.ID, id) })
	return at
}

// elsewhere reports whether the request with this id and uid is of another topic than was read: this one ends
// before the id, or holds something else there. Requests before the first offset were deleted after their
// seven days, or are no longer kept, so their absence means nothing.
func (q *Requests) elsewhere(resource string, id int64, uid string) bool {
	if id < q.first || id >= q.at {
		return id >= q.at
	}
	i := q.index(id)
	if i == len(q.all) {
		return true
	}
	at := q.all[i]
	return at.ID != id || at.Resource != resource || at.UID != uid
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

// run follows the topic until ctx ends. It waits for no transaction: a program that leaves one open there
// does not keep others' requests waiting.
func (q *Requests) run(ctx context.Context) {
	said := ""
	for wait.For(ctx, followPause) == nil {
		err := q.look(ctx, q.c.admin.ListCommittedOffsets)
		if err == nil || ctx.Err() != nil || errors.Is(err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if text := err.Error(); text != said {
			said = text
			q.c.log.Warn("requests cannot be read, trying again", zap.Error(err))
		}
	}
}

// look reads up to end the requests that were written since the last look. It shows them all at once: an
// owner that accepted the first ones before q.at moved would have a watermark that names a request behind
// q.at (elsewhere).
func (q *Requests) look(ctx context.Context, end lister) error {
	select {
	case q.looking <- struct{}{}:
		defer func() { <-q.looking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	spans, anew, err := q.log.open(ctx, end)
	if err != nil {
		return err
	}
	if n := len(q.all); n > 0 && !anew && (length(spans) > 0 || q.log.id == "") {
		// Brokers without topic ids show another topic only by its content.
		same, err := q.holds(ctx, q.all[n-1])
		if err != nil {
			return err
		}
		if !same {
			q.log.next = nil
			if spans, anew, err = q.log.open(ctx, end); err != nil {
				return err
			}
		}
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
			found = slices.Delete(found, 0, mostRequests-1) // one more than show keeps
		}
	}
	if wrong != nil { // one line for all: a program may flood the topic
		q.c.log.Warn("skipping records that are not requests", zap.String("topic", q.log.topic),
			zap.Int("skipped", skipped), zap.NamedError("first", wrong))
	}
	q.show(found, spans[0], anew)
	return nil
}

// holds reports whether the topic holds a request that was read before.
func (q *Requests) holds(ctx context.Context, known watermark.Request) (bool, error) {
	for record, err := range q.c.fold(ctx, q.log.topic, []span{{0, known.ID, known.ID + 1}}) {
		if err != nil {
			return false, err
		}
		request, err := watermark.DecodeRequest(string(record.Key), record.Offset, record.Value)
		return err == nil && request.UID == known.UID, nil
	}
	return false, nil
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

// show makes the requests that were found in a span known. If the span is of another topic than before,
// they replace all others.
func (q *Requests) show(found []watermark.Request, read span, anew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if anew {
		q.all, q.first = nil, read.from
	}
	q.all, q.at, q.caughtUp = append(q.all, found...), read.to, true
	if over := len(q.all) - mostRequests; over > 0 {
		q.c.log.Warn("too many requests in seven days: the oldest are forgotten, whether accepted or not",
			zap.String("topic", q.log.topic), zap.Int("kept", mostRequests))
		q.all = slices.Clone(q.all[over:])
		q.first = q.all[0].ID
	}
	if len(found) > 0 || anew {
		close(q.changed)
		q.changed = make(chan struct{})
	}
}
